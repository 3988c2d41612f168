"""Chaos report: what came of the turns of a chaos run, as a table, as JSON and as a page."""

import json
import logging
import platform
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Min, Q, QuerySet
from rich.console import Group
from rich.table import Table

from agents.llm.outcomes import REPLIED
from agents.models import Envelope, ModelCall, Step
from agents.names import Status
from agents.steps import events
from assistant.lab.model_server import Call
from conversations.models import Message

log = logging.getLogger(__name__)

# What marks the turn a call belongs to, in every question of a run.
MARK = re.compile(r"case (\d{6})\b")
ZEROS = {
    "lost": "turns lost",
    "failed": "turns that ended with an error",
    "answered_twice": "turns answered twice",
    "steps_twice": "turns with a step that took effect twice",
    "paid_twice": "model calls made again although their reply was stored",
    "told_twice": "turns whose watchers were told twice that it ended",
}
FIGURES = {
    "turns": "turns",
    "hops": "hops (steps done)",
    "model_calls": "replies of models",
    "taken_over": "steps taken over by another worker",
    "refused": "questions not accepted while the server was away",
}
RECOVERED = "until the last of the turns under way went on"


@dataclass(frozen=True)
class Tally:
    """The figures of one run. The first group must be nothing but zeros."""

    lost: int  # accepted and never ended, or ended without a word to the user
    failed: int  # ended with an error the user was told the number of
    answered_twice: int
    steps_twice: int  # of the same number, or done after the turn had ended
    paid_twice: int  # calls made again although their reply was in the journal
    told_twice: int  # turns whose watchers were told more often than once that it ended
    turns: int
    hops: int
    model_calls: int
    taken_over: int  # steps that a second worker had to do
    refused: int  # questions that were not accepted, because the server was away or said so

    @property
    def holds(self) -> bool:
        """Whether nothing went wrong that must not."""
        return not (
            self.lost
            or self.failed
            or self.answered_twice
            or self.steps_twice
            or self.paid_twice
            or self.told_twice
        )

    def as_json(self) -> dict[str, float]:
        """Return the figures by name."""
        return asdict(self)


def tally(turns: dict[str, str], refused: int, ledger: list[Call]) -> Tally:
    """Return the figures of these turns, ids with their marks, whose calls are in the ledger."""
    envelopes = Envelope.objects.filter(pk__in=turns)
    steps = Step.objects.filter(envelope__in=envelopes)
    return Tally(
        lost=len(turns) - envelopes.exclude(status=Status.RUNNING).count() + _wordless(envelopes),
        failed=envelopes.filter(status__in=(Status.FAILED, Status.EXPIRED)).count(),
        answered_twice=_answered_twice(envelopes),
        steps_twice=_steps_twice(envelopes),
        paid_twice=_paid_twice(turns, ledger),
        told_twice=_told_twice(turns),
        turns=len(turns),
        hops=steps.filter(status=Step.Status.DONE).count(),
        model_calls=ModelCall.objects.filter(envelope__in=envelopes, outcome__in=REPLIED).count(),
        taken_over=steps.filter(attempt__gt=1, started__isnull=False).count(),
        refused=refused,
    )


def _wordless(envelopes: "QuerySet[Envelope]") -> int:
    """Turns that ended and left no message to the user."""
    ended = envelopes.exclude(status=Status.RUNNING).annotate(
        words=Count("messages", filter=Q(messages__role=Message.Author.ASSISTANT))
    )
    return ended.filter(words=0).count()


def _answered_twice(envelopes: "QuerySet[Envelope]") -> int:
    """In each conversation of a run one question was asked, maybe by turns that nobody knows."""
    answers = Message.objects.filter(
        conversation__in=envelopes.values("conversation_id"), role=Message.Author.ASSISTANT
    )
    repeated = answers.values("conversation").annotate(times=Count("pk")).filter(times__gt=1)
    return sum(times - 1 for times in repeated.values_list("times", flat=True))


def _steps_twice(envelopes: "QuerySet[Envelope]") -> int:
    """Steps whose work was taken more often than once: the envelope counts each."""
    done = Count("steps", filter=Q(steps__status=Step.Status.DONE))
    return envelopes.annotate(done=done).exclude(process_count=F("done")).count()


def _told_twice(turns: Iterable[str]) -> int:
    """The side effect that Redis keeps, and no transaction takes back."""
    streams = Envelope.objects.filter(pk__in=list(turns)).values_list("target_list", flat=True)
    pipe = events.connection().pipeline(transaction=False)
    for stream in streams:
        pipe.xrange(stream)
    names = ([fields["event"] for _, fields in entries] for entries in pipe.execute())
    return sum(events.count("workflow_complete") > 1 for events in names)


def _paid_twice(turns: dict[str, str], ledger: list[Call]) -> int:
    calls = calls_by_mark(ledger)
    journal = ModelCall.objects.filter(envelope__in=list(turns), outcome__in=REPLIED)
    stored: dict[str, list[StoredReply]] = {}
    rows = journal.order_by("created").values_list(
        "envelope_id", "request", "step_number", "created"
    )
    for envelope_id, request, step, at in rows:
        reply = StoredReply(request["messages"], step, at.timestamp())
        stored.setdefault(turns[str(envelope_id)], []).append(reply)
    count = 0
    for turn, mark in turns.items():
        repeated = repeated_calls(calls[mark], stored.get(mark, []))
        count += len(repeated)
        if repeated:
            prompts = ", ".join(call.prompt for call in repeated)
            log.warning("paid twice in turn %s: %s", turn, prompts)
    return count


def calls_by_mark(ledger: list[Call]) -> dict[str, list[Call]]:
    """Return the calls of each turn, by its mark, in the order they arrived."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in ledger:
        if mark := MARK.search(json.dumps(call.body)):
            calls[mark[1]].append(call)
    return calls


class StoredReply(NamedTuple):
    """A reply in the journal: to which messages, at which step of the turn, and since when."""

    messages: list[dict[str, str]]
    step: int | None
    at: float  # Unix time


def repeated_calls(calls: list[Call], stored: Sequence[StoredReply]) -> list[Call]:
    """Return those of a turn's calls that were made although their reply was in the journal.

    `stored` are its replies, the earliest first. A later step may ask the same: an answer that
    came back as it was is reviewed anew where the first review was no verdict.
    """
    offset = time.time() - time.monotonic()
    repeated = []
    for call in calls:
        began = call.began + offset
        equal = [reply for reply in stored if reply.messages == call.body.get("messages")]
        own = next((reply.step for reply in equal if reply.at >= began), None)
        if any(reply.at < began and own in {None, reply.step} for reply in equal):
            repeated.append(call)
    return repeated


@dataclass(frozen=True)
class CommittedFault:
    """A fault of a run, and when its harm was done."""

    name: str
    at: datetime


@dataclass(frozen=True)
class Recovery:
    """All faults of one name: how often, and the seconds until the last turn went on."""

    name: str
    times: int
    usual: float  # the median over these faults
    slowest: float


def recoveries(turns: Iterable[str], committed: Sequence[CommittedFault]) -> list[Recovery]:
    """Return a row for each fault's name, in the order of the alphabet.

    A turn goes on when one of its steps is done. What another fault delays meanwhile counts.
    """
    ids = [UUID(turn) for turn in turns]
    waits: dict[str, list[float]] = defaultdict(list)
    for fault in committed:
        waits[fault.name].append(_until_all_went_on(ids, fault.at))
    return [
        Recovery(name, len(seconds), round(median(seconds), 1), round(max(seconds), 1))
        for name, seconds in sorted(waits.items())
    ]


def _until_all_went_on(turns: list[UUID], at: datetime) -> float:
    """Seconds; 0 when no turn was under way."""
    done = Step.objects.filter(
        envelope__in=turns, envelope__create_ts__lt=at, status=Step.Status.DONE, ended__gt=at
    )
    firsts = done.values_list("envelope").annotate(first=Min("ended"))
    return max(((first - at).total_seconds() for _, first in firsts), default=0.0)


@dataclass(frozen=True)
class Run:
    """What was done to Docent, for how long, and what came of it."""

    tally: Tally
    recoveries: Sequence[Recovery]
    seed: int
    minutes: float

    def rows(self) -> list[tuple[str, str]]:
        """Return what must be zero, then the other figures."""
        values = self.tally.as_json()
        figures = [(title, f"{values[name]:,}") for name, title in (ZEROS | FIGURES).items()]
        return [*figures, ("slowest recovery, seconds", f"{self.slowest:.1f}")]

    @property
    def slowest(self) -> float:
        """Seconds after a fault until the last of the turns under way went on."""
        return max((fault.slowest for fault in self.recoveries), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            **self.tally.as_json(),
            "slowest_recovery": self.slowest,
            "faults": [asdict(fault) for fault in self.recoveries],
        }

    def tables(self) -> Group:
        """Return the figures for a terminal."""
        figures = Table("what", "figure", title=f"seed {self.seed}")
        for row in self.rows():
            figures.add_row(*row)
        faults = Table("fault", "times", "median s", "slowest s", title=RECOVERED)
        for fault in self.recoveries:
            faults.add_row(*_cells(fault))
        return Group(figures, faults)

    def page(self) -> str:
        """Return the page of the documentation that shows this run."""
        rows = "\n".join(f"| {title} | {figure} |" for title, figure in self.rows())
        faults = "\n".join(f"| {' | '.join(_cells(fault))} |" for fault in self.recoveries)
        command = f"python3 manage.py chaos --minutes {self.minutes:g} --seed {self.seed}"
        page = Path(__file__).with_name("chaos_page.md").read_text(encoding="utf-8")
        return page.format(rows=rows, faults=faults, command=command, machine=_machine())


def _cells(fault: Recovery) -> tuple[str, str, str, str]:
    return fault.name, str(fault.times), f"{fault.usual:.1f}", f"{fault.slowest:.1f}"


def _machine() -> str:
    return f"{platform.system()}, Python {platform.python_version()}"
