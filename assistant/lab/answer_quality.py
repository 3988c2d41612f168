"""Answer quality: what comes back to questions of which somebody knows the answer, or the place."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, Literal

from pydantic import AliasChoices, Field
from rich.console import Group, RenderableType
from rich.table import Table

from agents.attributes import DECLINING_REASONS, Reason
from agents.decision import Stage
from agents.documentation.passages import without_own_list
from agents.models import Envelope
from agents.words import words
from assistant.lab.judged_data import Line, Unjudgeable, read_lines
from assistant.lab.measures import digits

Kind = Literal["answered", "closest", "asked_back", "declined", "other"]
KINDS: tuple[Kind, ...] = ("answered", "closest", "asked_back", "declined", "other")
# Confidence is compared with what came of it in tenths.
BINS = 10
Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


class Question(Line):
    """A question; where known its answer, the sources that hold it, and whether any does."""

    question: str = Field(min_length=1, validation_alias=AliasChoices("question", "text"))
    answer: str = ""
    sources: list[str] = Field(default=[], validation_alias=AliasChoices("sources", "documents"))
    answerable: bool | None = None


@dataclass(frozen=True)
class Reply:
    """What came back to one question."""

    question: Question
    text: str  # without the list of sources
    kind: Kind
    confidence: float | None
    cited: list[str]  # sources, in order
    found: list[str]  # sources of all passages that were found

    @property
    def cites_right(self) -> bool:
        """Whether one of the right sources is cited."""
        return any(self.is_right(source) for source in self.cited)

    @property
    def cites_right_first(self) -> bool:
        """Whether what is cited first is right."""
        return bool(self.cited) and self.is_right(self.cited[0])

    @property
    def found_right(self) -> bool:
        """Whether search found one of the right sources."""
        return any(self.is_right(source) for source in self.found)

    @property
    def recall(self) -> float:
        """The share of the reference answer's different words that the reply has."""
        wanted = set(words(self.question.answer))
        return len(wanted & set(words(self.text))) / len(wanted) if wanted else 0.0

    def is_right(self, source: str) -> bool:
        """Whether a source is one of the question's, which may be given as ends of paths."""
        path = source.partition("#")[0]
        return any(f"/{path}".endswith(f"/{right}") for right in self.question.sources)

    def record(self) -> dict[str, Any]:
        """Return it as JSON values, to be read."""
        return self.question.model_dump() | {
            "reply": self.text,
            "kind": self.kind,
            "confidence": self.confidence,
            "cited": self.cited,
        }


Keep = Callable[[Reply], None]


def questions_of(path: Path) -> list[Question]:
    """Return the questions of the file. Raises Unjudgeable, which names the line."""
    questions = [question for _, question in read_lines(path, Question)]
    if not questions:
        raise Unjudgeable(f"{path}: there are no questions in it.")
    return questions


def ask_all(
    questions: Sequence[Question],
    ask: Callable[[str], Envelope],
    watch: Watch | None = None,
    keep: Keep | None = None,
) -> list[Reply]:
    """Ask every question in a conversation of its own; `ask` returns the turn once it has ended.

    `keep` is given each reply as it comes.
    """
    replies = []
    for number, question in enumerate(questions, start=1):
        replies.append(reply_of(question, ask(question.question)))
        if keep:
            keep(replies[-1])
        if watch:
            watch(number, len(questions))
    return replies


def reply_of(question: Question, turn: Envelope) -> Reply:
    """Return what came back in a turn that has ended."""
    payload = turn.payload
    return Reply(
        question=question,
        text=without_own_list(payload.get("response", "")),
        kind=kind_of(payload),
        confidence=payload.get("generation_confidence"),
        cited=[each["source"] for each in payload.get("citations_used") or []],
        found=[each["source"] for each in payload.get("search_results") or []],
    )


def kind_of(payload: dict[str, Any]) -> Kind:
    """Return what kind of reply a turn ended with."""
    if payload.get("stage") == Stage.CLARIFICATION:
        declines = Reason(payload["clarification_reason"]) in DECLINING_REASONS
        return "declined" if declines else "asked_back"
    if payload.get("stage") == Stage.QUALITY and payload.get("citations_used"):
        return "closest" if payload.get("answer_form") == "closest" else "answered"
    return "other"


def figures(replies: Sequence[Reply], cpu_seconds: float | None) -> dict[str, Any]:
    """Return shares of the kinds, and what the answers are worth.

    Of questions not marked as unanswerable: the shares; of those with sources how many cite a
    right one, and first, and how many of those whose source was found are answered; of those with
    a reference the recall of its words, 0 where nothing was quoted, and the words of the reply. Of
    unanswerable ones the shares. `calibration` holds per tenth of confidence how many answers of
    questions with sources cite a right one first. `cpu_seconds` are the workers', per question;
    None where they cannot be read.
    """
    able = [reply for reply in replies if reply.question.answerable is not False]
    unable = [reply for reply in replies if reply.question.answerable is False]
    sourced = [reply for reply in able if reply.question.sources]
    found = [reply for reply in sourced if reply.found_right]
    referenced = [reply for reply in able if reply.question.answer]
    sizes = [len(words(reply.text)) for reply in able if reply.kind in {"answered", "closest"}]
    return {
        "questions": len(replies),
        "answerable": shares(able),
        "unanswerable": shares(unable),
        "cites_right": share(reply.cites_right for reply in sourced),
        "cites_right_first": share(reply.cites_right_first for reply in sourced),
        "found": share(reply.found_right for reply in sourced),
        "answered_of_found": share(reply.kind == "answered" for reply in found),
        "recall": spread([reply.recall for reply in referenced]),
        "words": spread([float(size) for size in sizes]),
        "calibration": calibration(replies),
        "cpu_seconds": cpu_seconds,
    }


def shares(replies: Sequence[Reply]) -> dict[str, Any]:
    """Return how many there are, and the share of each kind."""
    kinds: dict[str, Any] = {kind: share(reply.kind == kind for reply in replies) for kind in KINDS}
    return {"questions": len(replies), **kinds}


def share(cases: Iterable[bool]) -> float | None:
    """Return the share of the cases that are so; None without cases."""
    known = list(cases)
    return sum(known) / len(known) if known else None


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and median; None without values."""
    return {
        "mean": mean(values) if values else None,
        "median": median(values) if values else None,
    }


def calibration(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """Return for each tenth of confidence in which there are answers how many of them are right."""
    judged = [
        (min(BINS - 1, int(reply.confidence * BINS)), reply.cites_right_first)
        for reply in replies
        if reply.kind == "answered"
        and reply.confidence is not None
        and (reply.question.sources or reply.question.answerable is False)
    ]
    return [
        {
            "from": number / BINS,
            "answers": sum(place == number for place, _ in judged),
            "right": share(right for place, right in judged if place == number),
        }
        for number in sorted({place for place, _ in judged})
    ]


@contextmanager
def saving(path: Path | None) -> Iterator[Keep]:
    """Write every reply as a line of JSON as soon as it is there: hours may lie between two.

    Raises Unjudgeable when the file cannot be written, before anything is asked.
    """
    if path is None:
        yield lambda reply: None
        return
    try:
        file = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise Unjudgeable(f"--save {path}: {error.strerror}.") from error
    with file:
        yield lambda reply: print(json.dumps(reply.record(), ensure_ascii=False), file=file)


def table(figures: dict[str, Any]) -> RenderableType:
    """Return the shares, and what the answers are worth."""
    rows = Table(
        "", "questions", *(kind.replace("_", " ") for kind in KINDS),
        title=f"{figures['questions']} questions", title_justify="left",
    )  # fmt: skip
    for name in ("answerable", "unanswerable"):
        part = figures[name]
        rows.add_row(name, str(part["questions"]), *(digits(part[kind]) for kind in KINDS))
    right = Table("confidence from", "answers", "right")
    for each in figures["calibration"]:
        right.add_row(f"{each['from']:.1f}", str(each["answers"]), digits(each["right"]))
    recall, size = figures["recall"], figures["words"]
    return Group(
        rows,
        f"A right source is cited: {digits(figures['cites_right'])}, first: "
        f"{digits(figures['cites_right_first'])}; found by search: {digits(figures['found'])}, "
        f"answered of these: {digits(figures['answered_of_found'])}",
        f"Words of the reference in the reply: mean {digits(recall['mean'])}, median "
        f"{digits(recall['median'])}; words of a reply: mean {digits(size['mean'])}, median "
        f"{digits(size['median'])}",
        f"CPU-seconds of the workers per question: {digits(figures['cpu_seconds'])}",
        right,
    )
