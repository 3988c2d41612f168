"""The timeline puts each step where it was in the turn."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from agents.models import Envelope, Step
from agents.names import Status
from agents.trace.trace import timeline

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds)


def envelope(*, status: Status = Status.COMPLETED) -> Envelope:
    return Envelope(conversation_id=uuid4(), status=status, create_ts=START, update_ts=at(1000))


def step(number: int, available: int, started: int | None, ended: int | None) -> Step:
    return Step(
        number=number,
        role="lang",
        stage="lang",
        status=Step.Status.DONE if ended is not None else Step.Status.READY,
        available_at=at(available),
        started=None if started is None else at(started),
        ended=None if ended is None else at(ended),
    )


def test_waiting_and_working_follow_each_other_on_the_axis() -> None:
    (span,) = timeline(envelope(), [step(1, 100, 250, 750)])

    assert (span.wait_ms, span.run_ms) == (150, 500)
    assert (span.waited.x, span.waited.width) == ("10.00", "15.00")
    assert span.ran is not None
    assert (span.ran.x, span.ran.width) == ("25.00", "50.00")


def test_a_step_of_no_time_can_still_be_seen() -> None:
    (span,) = timeline(envelope(), [step(1, 1000, 1000, 1000)])

    assert span.ran is not None
    assert float(span.ran.width) > 0
    assert float(span.ran.x) + float(span.ran.width) <= 100


def test_a_step_nobody_took_waits_until_now() -> None:
    (span,) = timeline(envelope(status=Status.RUNNING), [step(1, 0, None, None)])

    assert span.ran is None
    assert span.wait_ms is None
    assert (span.condition, span.waited.width) == ("queued", "100.00")


def test_a_step_is_named_with_its_queue() -> None:
    (span,) = timeline(envelope(), [step(1, 0, 1, 2)])

    assert span.queue == "agents.lang"


def test_a_turn_without_steps_has_nothing_to_draw() -> None:
    assert timeline(envelope(), []) == []
