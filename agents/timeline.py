"""Timeline: where the time of a turn went, step by step, ready to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.timezone import now

from agents.models import Envelope, Step
from agents.names import Role

# A step of a millisecond in a turn of seconds would otherwise not be seen.
LEAST_WIDTH = 0.6


@dataclass(frozen=True)
class Bar:
    """A stretch of time, in percent of the turn; text, since a template would localise floats."""

    x: str
    width: str


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


def timeline(envelope: Envelope, steps: Sequence[Step]) -> list[Span]:
    """Return the spans of `steps` on the axis from the turn's start to its end, or to now."""
    at = now()
    start = min([envelope.create_ts, *(step.available_at for step in steps)])
    end = max(
        [
            envelope.update_ts if envelope.ended else at,
            *(step.ended for step in steps if step.ended),
        ]
    )
    return [_span(step, start, max((end - start).total_seconds(), 0.001), at) for step in steps]


def _span(step: Step, start: datetime, seconds: float, at: datetime) -> Span:
    def bar(since: datetime, until: datetime, least: float) -> Bar:
        x = min(max((since - start).total_seconds() / seconds * 100, 0), 100 - least)
        width = max((until - since).total_seconds() / seconds * 100, least)
        return Bar(f"{x:.2f}", f"{min(width, 100 - x):.2f}")

    halted = step.ended or at
    return Span(
        step=step,
        queue=Role(step.role).queue,
        condition=step.condition(at),
        wait_ms=milliseconds(step.wait_seconds),
        run_ms=milliseconds(step.run_seconds),
        waited=bar(step.available_at, step.started or halted, 0),
        ran=bar(step.started, halted, LEAST_WIDTH) if step.started else None,
    )


def milliseconds(seconds: float | None) -> int | None:
    """Return seconds as whole milliseconds; None stays None."""
    return None if seconds is None else round(max(seconds, 0) * 1000)
