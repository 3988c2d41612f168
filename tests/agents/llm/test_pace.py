"""Pace: what time a call gets, so that slow roles take none of the answer's."""

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.utils.timezone import now
from pytest_django import Settings

from agents.llm import pace
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.pace import Limits, limits
from agents.llm.requests import Reply, Request
from agents.llm.retry import Listener, RetriesExhausted, send_with_retries
from agents.steps import events
from tests.agents.llm.probe import request
from tests.scripted import Response, scripted

LATE = ModelFailure(Outcome.TIMEOUT, "nothing came")
MODEL = "fake@scripted"


@pytest.fixture(autouse=True)
def nothing_known(settings: Settings) -> None:
    """Nothing is noted before; the answer is the same model's and may take a minute."""
    events.connection().flushdb()
    response = replace(settings.MODELS["response"], model=MODEL, timeout=60.0)
    settings.MODELS = settings.MODELS | {"response": response}
    settings.MAX_CONTEXT_LENGTH = 8000


def asking(characters: int, model: str = MODEL) -> Request:
    return request(model, messages=({"role": "user", "content": "x" * characters},))


def took(role: str, read: int, begin: float, written: int = 100, rest: float = 0.0) -> None:
    """A call of this role took so long for so many characters."""
    reply = Reply("x" * written, seconds=begin + rest, first_token_seconds=begin)
    pace.note_reply(asking(read), role, reply)


def given(role: str, left: float | None, read: int = 4000, seconds: float = 30.0) -> Limits:
    return limits(asking(read), role, "turn", seconds, left)


def refused(role: str, left: float, read: int = 4000) -> str:
    with pytest.raises(ModelFailure) as caught:
        given(role, left, read)
    assert caught.value.outcome is Outcome.OUT_OF_TIME
    return str(caught.value)


def test_half_of_the_time_is_kept_for_an_answer_of_which_nothing_is_known() -> None:
    assert given("translation", 115).whole == 30
    assert given("translation", 40).whole == 20
    assert given("response", 40, seconds=60).whole == 40


def test_nothing_is_kept_for_an_answer_that_no_model_writes(settings: Settings) -> None:
    response = replace(settings.MODELS["response"], model="")
    settings.MODELS = settings.MODELS | {"response": response}
    assert given("translation", 20).whole == 20


def test_time_is_kept_for_who_writes_the_answer_of_this_turn(settings: Settings) -> None:
    nobody = replace(settings.MODELS["response"], model="")
    own = limits(asking(4000), "translation", "turn", 30.0, 20, answer=nobody)
    assert own.whole == 20
    settings.MODELS = settings.MODELS | {"response": nobody}
    writer = replace(nobody, model=MODEL)
    assert limits(asking(4000), "translation", "turn", 30.0, 20, answer=writer).whole == 10


def test_nothing_is_kept_for_an_answer_that_is_there() -> None:
    assert given("quality", 20).whole == 20


def test_a_role_that_would_take_longer_than_it_may_is_not_asked() -> None:
    # 45 tokens a second are some 180 characters.
    took("translation", 3800, 1 + 3800 / 180)
    assert given("translation", 115, 3800).whole == 30
    assert "would take about 45 s and may take 30" in refused("essence", 115, 8000)
    assert given("response", 70, 14_000, seconds=60).whole == 60


def test_a_role_gets_what_the_answer_leaves() -> None:
    took("response", 14_000, 21, written=1000, rest=10)
    kept = pace.seconds_of_answer(115)
    assert kept == pytest.approx(1.25 * 31, abs=0.1)
    assert given("guardrails", 50, 4000).whole == pytest.approx(50 - kept)
    assert "39 s are kept for the answer" in refused("guardrails", 42, 4000)
    assert given("quality", 42, 4000).whole == 30


def test_the_answer_is_asked_for_however_slow_the_model_was() -> None:
    took("response", 14_000, 50, written=1000, rest=40)
    assert given("response", 50, 14_000, seconds=60).whole == 50


def test_a_quick_model_takes_no_time_from_anybody() -> None:
    for _ in range(3):
        took("translation", 3800, 0.8, rest=0.4)
        took("response", 14_000, 1.2, written=800, rest=3)
    assert pace.seconds_of_answer(115) < 8
    assert given("essence", 40, 8000).whole == 30


def test_one_slow_call_among_quick_ones_changes_nothing() -> None:
    for begin in (0.8, 25.0, 0.9):
        took("essence", 8000, begin)
    assert given("essence", 60, 8000).whole == 30


def test_a_model_is_judged_by_its_last_calls_only() -> None:
    for _ in range(pace.CALLS):
        took("essence", 8000, 29)
    assert refused("essence", 60, 8000)
    for _ in range(pace.CALLS):
        took("essence", 8000, 0.5)
    assert given("essence", 60, 8000).whole == 30


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.TOO_SLOW])
def test_who_was_late_is_asked_for_the_answer_only_which_begins_at_once(outcome: Outcome) -> None:
    pace.note_lateness(MODEL, "turn", ModelFailure(outcome, "late"))
    for role in ("essence", "quality", "clarification"):
        assert "let this turn wait in vain" in refused(role, 100)
    assert given("response", 100) == Limits(30, 5, hurried=False)
    assert given("response", 20) == Limits(10, 5, hurried=False)
    assert given("response", 6) == Limits(3, 3, hurried=True)


def test_who_had_little_time_says_nothing_of_the_answer() -> None:
    assert not given("expansion", 115, 1500, seconds=8).telling
    assert given("essence", 115).telling
    assert given("response", 115).telling


def test_other_turns_and_providers_and_calls_nobody_waits_for_are_not_hurried() -> None:
    pace.note_lateness(MODEL, "turn", LATE)
    for model, turn, left in (
        (MODEL, "other", 100),
        ("fake@other", "turn", 100),
        (MODEL, "turn", None),
    ):
        assert limits(asking(100, model), "essence", turn, 30, left).begin == 30
    pace.note_lateness(MODEL, None, LATE)
    assert limits(asking(100), "essence", None, 30, 100).begin == 30


def test_what_failed_for_another_reason_was_not_late() -> None:
    pace.note_lateness(MODEL, "turn", ModelFailure(Outcome.SERVER_ERROR, "it fails"))
    assert given("essence", 100).begin == 30


def test_with_redis_away_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    away = redis.Redis.from_url("redis://127.0.0.1:9/0")
    monkeypatch.setattr(events, "connection", lambda: away)
    pace.note_lateness(MODEL, "turn", LATE)
    took("essence", 100, 300)
    assert given("essence", 100).begin == 30


def test_a_late_reply_that_began_in_time_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "BEGIN_SECONDS", 1.5)
    pace.note_lateness(MODEL, "turn", LATE)
    values: dict[str, Any] = {
        "role": "response",
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


def test_what_a_call_took_is_known_to_the_next() -> None:
    with scripted() as models:
        models.says("probe", Response("word " * 20, seconds=1.4, first_after=1.2))
        begun = time.monotonic()
        send_with_retries(request(), role="essence", seconds=30.0, listener=Listener())
        took = time.monotonic() - begun
    estimate = pace.estimate(MODEL, "essence", pace.characters(request()))
    assert estimate is not None
    assert 1.2 < estimate < 1.2 * took
