"""Fault verdicts: what a user gets while a server or a model fails, and whether that is good.

The rules stand in `reasons`. They look at what was sent and at the documents, and not at how the
program came to it; the texts they look for are those that the faults say.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from agents.attributes import DECLINING_REASONS, Reason
from agents.decision import Stage
from agents.documentation.citations.statements import without_markers
from agents.documentation.passages import without_own_list
from agents.models import Envelope
from agents.names import Role, Status
from assistant.lab import scripted_faults
from assistant.lab.judged_data import Unjudgeable
from assistant.lab.model_server import Call
from assistant.lab.scripted_faults import Fault
from assistant.lab.scripted_replies import ELEMENT

Gets = Literal[
    "answered",
    "quoted",
    "closest",
    "declined",
    "asked back",
    "refused",
    "expired",
    "error",
    "other",
]
# A question that the documents answer gets nothing worse than without a model.
ANSWERS = frozenset({"answered", "quoted", "closest"})
# As a danger, and not because nobody knows an answer.
UNSAFE = frozenset({Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.INAPPROPRIATE})
# Three attempts for each of six roles, and two to spare.
MOST_CALLS = 20
# So many words in a row are a prompt's and nobody else's.
RUN = 8
# So often the same words come again in a text that has no end.
LOOP_WORDS, LOOP_TIMES = 5, 4
# So many prompts are not named one by one.
MANY = 4
WORD = re.compile(r"\w+")
# What no reply may hold, whoever wrote it. None of the pages has any of it.
MUST_NOT: Mapping[str, re.Pattern[str]] = {
    "gibberish": re.compile(re.escape(scripted_faults.GIBBERISH.split()[0]) + "|x#y%"),
    "fence": re.compile("```"),
    "thought": re.compile("</?think>|" + re.escape(scripted_faults.THOUGHT)),
    "preface": re.compile(re.escape(scripted_faults.PREFACE)),
    "apology": re.compile(re.escape(scripted_faults.APOLOGY)),
    "broken character": re.compile("[\ufffd\0]"),
    "fragment": re.compile(r"\bat the bott\b"),
    "off topic": re.compile(re.escape(scripted_faults.OFF_TOPIC)),
    "the question": re.compile(re.escape(scripted_faults.ORDINARY.text)),
    "wrong number": re.compile(re.escape(scripted_faults.WRONG_NUMBER)),
    "falsehood": re.compile(re.escape(scripted_faults.FALSE_YES.partition(" {m}")[0])),
    "another language": re.compile(re.escape(scripted_faults.FOREIGN.partition(" {m}")[0])),
    "name of an element": re.compile(r"\b[a-z_]+-[0-9a-f]{8}\b"),
    "JSON or HTML": re.compile(r'"type":|<html', re.IGNORECASE),
}


@dataclass(frozen=True)
class Row:
    """What came of one fault."""

    fault: str
    at: list[str]  # the prompts it was at; empty: all
    question: str
    gets: Gets
    status: str
    mode: str
    decision: str  # quality's
    confidence: float | None
    citations: dict[str, int]  # by status
    holds: list[str]  # of what it must not
    calls: int  # that arrived at the server
    prompts: dict[str, int]  # these by prompt
    prompt_tokens: int  # of these, four characters each
    seconds: float
    degraded: dict[str, str]  # the reason by role, where rules did the work
    reasons: list[str]  # why it is bad; empty: it is good
    text: str

    @property
    def verdict(self) -> str:
        """In a word."""
        return "bad" if self.reasons else "good"

    def record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self) | {"verdict": self.verdict}


def row_of(fault: Fault, envelope: Envelope, calls: Sequence[Call], seconds: float) -> Row:
    """Return what came of a fault in a turn that has ended."""
    payload = envelope.payload
    text = without_own_list(payload.get("response") or "")
    gets = gets_of(envelope)
    citations = payload.get("citations_used") or [] if gets in ANSWERS else []
    holds = held(text, calls)
    return Row(
        fault=fault.name,
        at=list(fault.at),
        question=fault.question.text,
        gets=gets,
        status=envelope.status,
        mode=payload.get("mode", ""),
        decision=payload.get("quality_decision") or "",
        confidence=payload.get("generation_confidence"),
        citations=dict(Counter(each["citation_status"] for each in citations)),
        holds=holds,
        calls=len(calls),
        prompts=dict(Counter(call.prompt for call in calls)),
        prompt_tokens=sum(map(tokens, calls)),
        seconds=round(seconds, 1),
        degraded=dict(envelope.steps.exclude(degraded="").values_list("role", "degraded")),
        reasons=list(reasons(fault, gets, text, holds, citations, payload, len(calls))),
        text=text,
    )


def gets_of(envelope: Envelope) -> Gets:
    """Return in a word what the user got."""
    payload = envelope.payload
    if envelope.status == Status.EXPIRED:
        return "expired"
    if envelope.status not in {Status.COMPLETED, Status.AWAITING_USER}:
        return "error"
    if payload.get("stage") == Stage.CLARIFICATION:
        reason = Reason(payload["clarification_reason"])
        if reason in UNSAFE:
            return "refused"
        return "declined" if reason in DECLINING_REASONS else "asked back"
    if payload.get("stage") == Stage.QUALITY and payload.get("citations_used"):
        forms: dict[str, Gets] = {"quoted": "quoted", "closest": "closest"}
        return forms.get(payload.get("answer_form", ""), "answered")
    return "other"


def held(text: str, calls: Sequence[Call]) -> list[str]:
    """Return the names of what is in a text and must not be."""
    names = [name for name, pattern in MUST_NOT.items() if pattern.search(text)]
    # What is said when a question is declined, a model is given to put it in other words.
    asked = (call for call in calls if call.prompt != Role.CLARIFICATION)
    if runs(text, RUN) & {run for call in asked for run in _own_runs(call)}:
        names.append("prompt")
    if any(count >= LOOP_TIMES for count in Counter(_runs(text, LOOP_WORDS)).values()):
        names.append("loop")
    return names


def _own_runs(call: Call) -> set[tuple[str, ...]]:
    """What we say in a call, without what others wrote."""
    own = (
        ELEMENT.sub("", str(message["content"]))
        for message in call.body["messages"]
        if message["role"] != "assistant"
    )
    return {run for text in own for run in runs(text, RUN)}


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    """Return so many words in a row, from each word on."""
    return set(_runs(text, length))


def _runs(text: str, length: int) -> Iterator[tuple[str, ...]]:
    words = WORD.findall(without_markers(text).casefold())
    return zip(*(words[place:] for place in range(length)), strict=False)


def tokens(call: Call) -> int:
    """Return about how many tokens were sent: four characters each, as the server counts."""
    return sum(len(str(message["content"])) for message in call.body["messages"]) // 4


def reasons(
    fault: Fault,
    gets: Gets,
    text: str,
    holds: Sequence[str],
    citations: Sequence[Mapping[str, Any]],
    payload: Mapping[str, Any],
    calls: int,
) -> Iterator[str]:
    """Yield why it is bad: the rules of the measurement, a sentence each."""
    if gets not in ANSWERS:
        yield f"The documents answer the question, and it was {gets}."
    else:
        if not any(fault.question.page in each["source"] for each in citations):
            yield "Another page is cited than the one that answers."
        if fault.question.words not in " ".join(text.split()):
            yield "What was asked for is not in it."
    approved = payload.get("quality_decision") == "approve" and gets in ANSWERS
    for name in holds:
        yield f"It holds: {name}{', approved' if approved else ''}."
    if any(falsely_verified(each, payload) for each in citations):
        yield "A sentence is called verified that its passage does not have."
    if fault.oversized and gets == "answered":
        yield "A reply without end was taken for an answer."
    if calls > MOST_CALLS:
        yield f"The server was asked {calls} times."


def falsely_verified(citation: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Whether a citation is called verified and its words are not in its passage, in their order.

    Marks, markers and case apart; the passage is looked up among the results of the search.
    """
    if citation["citation_status"] != "verified":
        return False
    passage = next(
        (
            f"{each['title']}\n{each['section']}\n{each['text']}"
            for each in payload.get("search_results") or []
            if each["chunk_id"] == citation["chunk_id"]
        ),
        "",
    )
    quote = WORD.findall(without_markers(citation["quote"]).casefold())
    return f" {' '.join(quote)} " not in f" {' '.join(WORD.findall(passage.casefold()))} "


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows, and how many are good."""
    bad = [row.fault for row in rows if row.reasons]
    return {
        "faults": len(rows),
        "good": len(rows) - len(bad),
        "bad": bad,
        "gets": Counter(row.gets for row in rows),
        "rows": [row.record() for row in rows],
    }


def save(figures: Mapping[str, Any], path: Path) -> None:
    """Write the figures as JSON. Raises Unjudgeable when the file cannot be written."""
    try:
        path.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise Unjudgeable(f"--save {path}: {error.strerror}.") from error


def saved(path: Path) -> dict[str, Any]:
    """Return the figures that were saved there. Raises Unjudgeable."""
    try:
        figures: dict[str, Any] = json.loads(path.read_bytes())
        return figures | {"rows": list(figures["rows"])}
    except OSError as error:
        raise Unjudgeable(f"--before {path}: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise Unjudgeable(f"--before {path}: it was not written by --save.") from error


def table(figures: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Table:
    """Return a line per fault; with the figures of an earlier time what it came to then."""
    rows = Table(
        "fault", "at", *(["before"] if before else []), "the user gets", "decision", "citations",
        "it holds", "calls", "tokens", "s", "",
        title=f"{figures['good']} of {figures['faults']} good", title_justify="left",
    )  # fmt: skip
    earlier = {row["fault"]: row for row in before["rows"]} if before else {}
    for row in figures["rows"]:
        rows.add_row(
            row["fault"],
            ", ".join(row["at"]) if len(row["at"]) < MANY else "shaped",
            *([_earlier(earlier.get(row["fault"]))] if before else []),
            row["gets"],
            row["decision"].replace("approve_with_reservations", "reservations"),
            ", ".join(f"{count} {status}" for status, count in row["citations"].items()),
            ", ".join(row["holds"]),
            str(row["calls"]),
            f"{row['prompt_tokens']:,}",
            f"{row['seconds']:.1f}",
            row["verdict"],
            style="red" if row["reasons"] else "",
        )
    return rows


def _earlier(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return ""
    return f"{row['verdict']}: {row['gets']}, {row['calls']} calls, {row['seconds']:.1f} s"
