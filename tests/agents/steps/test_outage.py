"""PostgreSQL goes away and comes back: what was done meanwhile is recorded, once."""

from collections.abc import Callable

import pytest
from django.db import DataError, OperationalError

from agents.decision import Decision, Stage
from agents.models import Step
from agents.names import Role
from agents.steps import step_lease, steps
from agents.steps.records import Conclusion, record
from tests.conftest import Begin


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_lease, "PAUSE_SECONDS", 0)


def broken(times: int, act: Callable[..., object], *, after: bool) -> Callable[..., object]:
    """`act`, whose connection breaks so many times before it is done, or after it was."""
    left = [times]

    def acting(*args: object) -> object:
        done = act(*args) if after or not left[0] else None
        if left[0]:
            left[0] -= 1
            raise OperationalError("the connection is lost")
        return done

    return acting


GOES_ON = Conclusion(decision=Decision(Stage.RESPONSE, (Role.RESPONSE,)))


@pytest.mark.parametrize(("times", "after"), [(3, False), (1, True)], ids=["away", "unheard"])
def test_a_decision_takes_effect_once_though_the_connection_broke(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, times: int, after: bool
) -> None:
    envelope = begin()
    monkeypatch.setattr(steps, "record", broken(times, record, after=after))
    steps.perform_one_by_one(Role.MANAGER, lambda _: GOES_ON)
    assert [step.status for step in envelope.steps.all()] == ["done", "ready"]
    envelope.refresh_from_db()
    assert envelope.process_count == 1


def test_what_the_database_refuses_is_not_tried_again() -> None:
    tried = []

    def refused() -> None:
        tried.append(1)
        raise DataError("no")

    with pytest.raises(DataError):
        step_lease.retry_outage(refused)
    assert tried == [1]


def test_after_a_lease_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Step, "LEASE", Step.LEASE * 0)

    def away() -> None:
        raise OperationalError("away")

    with pytest.raises(OperationalError):
        step_lease.retry_outage(away)
