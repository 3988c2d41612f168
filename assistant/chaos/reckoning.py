"""Reckoning: what came of the turns of a chaos run, counted in the database and the ledger."""

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from django.db.models import Count, F, Q, QuerySet

from agents import events
from agents.bench.modelserver import Asked
from agents.llm.outcomes import REPLIED
from agents.models import Envelope, ModelCall, Step
from agents.names import Status
from assistant.chaos.model import asked_again, by_turn
from conversations.models import Message

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reckoning:
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


def reckon(turns: dict[str, str], refused: int, ledger: list[Asked]) -> Reckoning:
    """Return the figures of these turns, ids with their marks, whose calls are in the ledger."""
    ours = Envelope.objects.filter(pk__in=turns)
    steps = Step.objects.filter(envelope__in=ours)
    return Reckoning(
        lost=len(turns) - ours.exclude(status=Status.RUNNING).count() + _wordless(ours),
        failed=ours.filter(status__in=(Status.FAILED, Status.EXPIRED)).count(),
        answered_twice=_answered_twice(ours),
        steps_twice=_steps_twice(ours),
        paid_twice=_paid_twice(turns, ledger),
        told_twice=_told_twice(turns),
        turns=len(turns),
        hops=steps.filter(status=Step.Status.DONE).count(),
        model_calls=ModelCall.objects.filter(envelope__in=ours, outcome__in=REPLIED).count(),
        taken_over=steps.filter(attempt__gt=1, started__isnull=False).count(),
        refused=refused,
    )


def _wordless(ours: "QuerySet[Envelope]") -> int:
    """Turns that ended and left no message to the user."""
    ended = ours.exclude(status=Status.RUNNING).annotate(
        words=Count("messages", filter=Q(messages__role=Message.Author.ASSISTANT))
    )
    return ended.filter(words=0).count()


def _answered_twice(ours: "QuerySet[Envelope]") -> int:
    """In each conversation of a run one question was asked, maybe by turns that nobody knows."""
    answers = Message.objects.filter(
        conversation__in=ours.values("conversation_id"), role=Message.Author.ASSISTANT
    )
    return sum(
        each["times"] - 1
        for each in answers.values("conversation").annotate(times=Count("pk")).filter(times__gt=1)
    )


def _steps_twice(ours: "QuerySet[Envelope]") -> int:
    """Steps whose work was taken more often than once: the envelope counts each."""
    done = Count("steps", filter=Q(steps__status=Step.Status.DONE))
    counted = ours.annotate(done=done).exclude(process_count=F("done"))
    return counted.count()


def _told_twice(turns: Iterable[str]) -> int:
    """The side effect that Redis keeps, and no transaction takes back."""
    streams = Envelope.objects.filter(pk__in=list(turns)).values_list("target_list", flat=True)
    pipe = events.connection().pipeline(transaction=False)
    for stream in streams:
        pipe.xrange(stream)
    told = ([fields["event"] for _, fields in entries] for entries in pipe.execute())
    return sum(said.count("workflow_complete") > 1 for said in told)


def _paid_twice(turns: dict[str, str], ledger: list[Asked]) -> int:
    calls = by_turn(ledger)
    journal = ModelCall.objects.filter(envelope__in=list(turns), outcome__in=REPLIED)
    stored: dict[str, list[tuple[list[dict[str, str]], float]]] = {}
    for turn, request, at in journal.values_list("envelope_id", "request", "created"):
        mark = turns[str(turn)]
        stored.setdefault(mark, []).append((request["messages"], at.timestamp()))
    again = {
        turn: [asked.prompt for asked in asked_again(calls[mark], stored.get(mark, []))]
        for turn, mark in turns.items()
    }
    for paid, prompts in again.items():
        if prompts:
            log.warning("paid twice in turn %s: %s", paid, ", ".join(prompts))
    return sum(map(len, again.values()))
