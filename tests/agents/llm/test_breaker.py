"""Breaker: when a provider is left alone, and how it comes back."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import redis
from pytest_django import Settings

from agents.llm import breaker
from agents.llm.outcomes import ModelFailure, Outcome
from agents.steps import events
from knowledge.providers import Provider

DOWN = ModelFailure(Outcome.SERVER_ERROR, "it fails (500)")


@dataclass
class Clock:
    """A clock that the test turns."""

    seconds: float = 1_800_000_000.0

    def time(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The breaker's clock."""
    clock = Clock()
    monkeypatch.setattr(breaker, "time", clock)
    return clock


@pytest.fixture(autouse=True)
def acme(settings: Settings) -> Iterator[None]:
    """A provider that nothing is known of."""
    settings.PROVIDERS = {"acme": Provider("acme", "http://acme.example/v1")}
    breaker.forget("acme")
    yield
    breaker.forget("acme")


def admitted() -> bool:
    try:
        breaker.admit("acme", seconds=10)
    except ModelFailure as failure:
        return failure.outcome is not Outcome.BREAKER_OPEN
    return True


def fail(times: int = 5, failure: ModelFailure = DOWN) -> None:
    for _ in range(times):
        breaker.failed("acme", failure)


def state() -> breaker.State:
    return breaker.states()["acme"]


def test_five_failures_in_a_row_open_it(clock: Clock) -> None:
    fail(4)
    assert admitted()
    assert state() == breaker.State(failures=4)
    fail(1)
    assert not admitted()
    assert state().name == "open"


def test_it_says_until_when_and_why(clock: Clock) -> None:
    fail()
    with pytest.raises(ModelFailure, match=r"acme is not asked until 08:00:15 UTC.*fails \(500\)"):
        breaker.admit("acme", seconds=10)


def test_a_reply_between_failures_begins_the_count_again(clock: Clock) -> None:
    fail(4)
    breaker.succeeded("acme")
    fail(4)
    assert admitted()


def test_failures_further_apart_do_not_count_together(clock: Clock) -> None:
    for _ in range(12):
        fail(1)
        clock.seconds += 8
        assert admitted()


def test_after_a_while_one_call_at_a_time_tries_and_a_reply_closes_it(clock: Clock) -> None:
    fail()
    clock.seconds += 16
    assert state().name == "half-open"
    assert admitted()
    assert not admitted()
    breaker.succeeded("acme")
    assert admitted()
    assert admitted()
    assert state() == breaker.State()


def test_a_failure_of_the_one_that_tries_opens_it_again(clock: Clock) -> None:
    fail()
    clock.seconds += 16
    assert admitted()
    fail(1)
    clock.seconds += 14
    assert not admitted()
    clock.seconds += 2
    assert admitted()


def test_one_that_tried_and_never_came_back_does_not_block_the_next(clock: Clock) -> None:
    fail()
    clock.seconds += 16
    assert admitted()
    clock.seconds += 12
    assert admitted()


def test_failures_of_calls_that_were_on_their_way_do_not_prolong_it(clock: Clock) -> None:
    fail()
    clock.seconds += 10
    fail(5)
    clock.seconds += 6
    assert admitted()


@pytest.mark.parametrize(
    "failure",
    [
        ModelFailure(Outcome.RATE_LIMITED, "later", retry_after=3),
        ModelFailure(Outcome.TOO_SLOW, "still writing"),
        ModelFailure(Outcome.KEY_REFUSED, "no"),
        ModelFailure(Outcome.MODEL_MISSING, "no"),
        ModelFailure(Outcome.REJECTED, "no"),
    ],
)
def test_what_shows_a_living_server_does_not_open_it(clock: Clock, failure: ModelFailure) -> None:
    fail(20, failure)
    assert admitted()


def test_a_timeout_counts_unless_the_call_was_in_a_hurry(clock: Clock) -> None:
    late = ModelFailure(Outcome.TIMEOUT, "late")
    for _ in range(20):
        breaker.failed("acme", late, hurried=True)
    assert admitted()
    fail(5, late)
    assert not admitted()


def test_providers_are_apart(clock: Clock) -> None:
    fail()
    breaker.admit("other", seconds=10)


def test_with_redis_away_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    fail()
    away = redis.Redis.from_url("redis://127.0.0.1:9/0")
    monkeypatch.setattr(events, "connection", lambda: away)
    assert admitted()
    fail()
    breaker.succeeded("acme")
    monkeypatch.undo()
