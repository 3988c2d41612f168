"""Timeline: where the time of a turn went, step by step, ready to be drawn."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.timezone import now

from agents.models import Envelope, ModelCall, Step
from agents.names import Role

# A step of a millisecond in a turn of seconds would otherwise not be seen.
LEAST_WIDTH = 0.6


@dataclass(frozen=True)
class Bar:
    """A stretch of time, in percent of the turn; text, since a template would localise floats."""

    x: str
    width: str


@dataclass(frozen=True)
class Mark:
    """One call of a model as it is drawn, inside the bar of its step."""

    call: ModelCall
    bar: Bar
    run_ms: int


@dataclass(frozen=True)
class Span:
    """One step as it is drawn: first it waited on its queue, then it ran. Times in ms."""

    step: Step
    queue: str
    condition: str
    wait_ms: int | None
    run_ms: int | None
    waited: Bar
    ran: Bar | None
    marks: list[Mark]


def timeline(
    envelope: Envelope, steps: Sequence[Step], calls: Sequence[ModelCall] = ()
) -> list[Span]:
    """Return the spans of `steps` on the axis from the turn's start to its end, or to now.

    Each holds the marks of those of `calls` that were made for it.
    """
    at = now()
    start = min([envelope.create_ts, *(step.available_at for step in steps)])
    end = max(
        [
            envelope.update_ts if envelope.ended else at,
            *(step.ended for step in steps if step.ended),
        ]
    )
    axis = Axis(start, max((end - start).total_seconds(), 0.001))
    made: dict[int | None, list[ModelCall]] = defaultdict(list)
    for call in calls:
        made[call.step_number].append(call)
    return [_span(step, made[step.number], axis, at) for step in steps]


@dataclass(frozen=True)
class Axis:
    """The time from the start of a turn to its end."""

    start: datetime
    seconds: float

    def bar(self, since: datetime, until: datetime, least: float) -> Bar:
        """Return the stretch between two moments, at least so many percent wide."""
        x = min(max((since - self.start).total_seconds() / self.seconds * 100, 0), 100 - least)
        width = max((until - since).total_seconds() / self.seconds * 100, least)
        return Bar(f"{x:.2f}", f"{min(width, 100 - x):.2f}")


def _span(step: Step, calls: Sequence[ModelCall], axis: Axis, at: datetime) -> Span:
    halted = step.ended or at
    return Span(
        step=step,
        queue=Role(step.role).queue,
        condition=step.condition(at),
        wait_ms=milliseconds(step.wait_seconds),
        run_ms=milliseconds(step.run_seconds),
        waited=axis.bar(step.available_at, step.started or halted, 0),
        ran=axis.bar(step.started, halted, LEAST_WIDTH) if step.started else None,
        marks=[_mark(call, axis) for call in calls],
    )


def _mark(call: ModelCall, axis: Axis) -> Mark:
    # A row is written when its call is over.
    began = call.created - timedelta(seconds=call.seconds)
    return Mark(call, axis.bar(began, call.created, LEAST_WIDTH), round(call.seconds * 1000))


def milliseconds(seconds: float | None) -> int | None:
    """Return seconds as whole milliseconds; None stays None."""
    return None if seconds is None else round(max(seconds, 0) * 1000)
