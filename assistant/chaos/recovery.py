"""Recovery: how long after each fault the turns that were under way went on."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from uuid import UUID

from django.db.models import Min

from agents.models import Step


@dataclass(frozen=True)
class Committed:
    """A fault, and when its harm was done."""

    name: str
    at: datetime


@dataclass(frozen=True)
class Recovery:
    """All faults of one name: how often, and the seconds until the last turn went on."""

    name: str
    times: int
    usual: float  # the median over these faults
    slowest: float


def recoveries(turns: Iterable[str], committed: Sequence[Committed]) -> list[Recovery]:
    """Return a row for each fault's name, in the order of the alphabet.

    A turn goes on when one of its steps is done. What another fault delays meanwhile counts.
    """
    ours = [UUID(turn) for turn in turns]
    waits: dict[str, list[float]] = defaultdict(list)
    for fault in committed:
        waits[fault.name].append(_until_all_went_on(ours, fault.at))
    return [
        Recovery(name, len(waited), round(median(waited), 1), round(max(waited), 1))
        for name, waited in sorted(waits.items())
    ]


def _until_all_went_on(turns: list[UUID], at: datetime) -> float:
    """Seconds; 0 when no turn was under way."""
    done = Step.objects.filter(
        envelope__in=turns, envelope__create_ts__lt=at, status=Step.Status.DONE, ended__gt=at
    )
    firsts = done.values_list("envelope").annotate(first=Min("ended"))
    return max(((first - at).total_seconds() for _, first in firsts), default=0.0)
