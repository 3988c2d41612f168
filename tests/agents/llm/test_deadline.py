"""Deadline: how long a turn still waits for a provider that let it wait before."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils.timezone import now

from agents.llm import retry
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.retry import Limits, Listener, RetriesExhausted, limits, send_with_retries
from agents.steps import events
from tests.agents.llm.probe import request
from tests.scripted import Response, scripted

LATE = ModelFailure(Outcome.TIMEOUT, "nothing came")


@pytest.fixture(autouse=True)
def nobody_was_late() -> None:
    """Nothing is noted before."""
    events.connection().flushdb()


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.TOO_SLOW])
def test_who_was_late_gets_seconds_to_begin_and_half_of_what_is_left(outcome: Outcome) -> None:
    assert limits("acme", "turn", 30, 100) == Limits(30, 30, hurried=False)
    retry.note_lateness("acme", "turn", ModelFailure(outcome, "late"))
    assert limits("acme", "turn", 30, 100) == Limits(30, 5, hurried=False)
    assert limits("acme", "turn", 30, 20) == Limits(10, 5, hurried=False)
    assert limits("acme", "turn", 30, 6) == Limits(3, 3, hurried=True)
    assert limits("acme", "turn", 2, 100) == Limits(2, 2, hurried=False)


def test_other_turns_and_providers_and_calls_nobody_waits_for_are_not_hurried() -> None:
    retry.note_lateness("acme", "turn", LATE)
    for provider, turn, left in (
        ("acme", "other", 100),
        ("other", "turn", 100),
        ("acme", "t", None),
    ):
        assert limits(provider, turn, 30, left) == Limits(30, 30, hurried=False)
    retry.note_lateness("acme", None, LATE)
    assert limits("acme", None, 30, 100).begin == 30


def test_what_failed_for_another_reason_was_not_late() -> None:
    retry.note_lateness("acme", "turn", ModelFailure(Outcome.SERVER_ERROR, "it fails"))
    assert limits("acme", "turn", 30, 100).begin == 30


def test_with_redis_away_nobody_was_late(monkeypatch: pytest.MonkeyPatch) -> None:
    away = redis.Redis.from_url("redis://127.0.0.1:9/0")
    monkeypatch.setattr(events, "connection", lambda: away)
    retry.note_lateness("acme", "turn", LATE)
    assert limits("acme", "turn", 30, 100).begin == 30


def test_a_reply_that_began_in_time_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BEGIN_SECONDS", 1.5)
    retry.note_lateness("scripted", "turn", LATE)
    values: dict[str, Any] = {
        "seconds": 30.0,
        "deadline": now() + timedelta(seconds=100),
        "turn": "turn",
        "listener": Listener(),
    }
    with scripted() as models:
        models.says("probe", Response("there"))
        send_with_retries(
            request(), seconds=30.0, listener=Listener()
        )  # what is imported once takes its time
        models.says("probe", Response("word " * 20, seconds=2.5, first_after=0.0))
        assert send_with_retries(request(), **values)[0].text == "word " * 20
        models.says("probe", Response(hang=True))
        with pytest.raises(RetriesExhausted, match=r"did not begin to answer within 1\.5 s"):
            send_with_retries(request(), **values)
