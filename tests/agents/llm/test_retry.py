"""Retry: when a call is tried again, for how long, and what is written down of it."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply
from agents.llm.retry import Listener, RetriesExhausted, send_with_retries, wait
from tests.agents.llm.probe import request
from tests.scripted import Response, Scripted, scripted

BUSY = Response(status=429)
LONG = "word " * 200


@pytest.fixture
def models() -> Iterator[Scripted]:
    """The server alone: nothing is stored here."""
    with scripted() as server:
        yield server


def obtained(**changes: Any) -> tuple[Reply, list[dict[str, Any]]]:
    values: dict[str, Any] = {"seconds": 5.0, "listener": Listener()}
    return send_with_retries(request(), **values | changes)


def exhausted(**changes: Any) -> RetriesExhausted:
    with pytest.raises(RetriesExhausted) as caught:
        obtained(**changes)
    return caught.value


@pytest.mark.parametrize(
    "said",
    [
        BUSY,
        Response(status=500),
        Response(status=503),
        Response(reset=True),
        Response(LONG, cut_after=2),
    ],
)
def test_what_may_pass_is_tried_again(models: Scripted, said: Response) -> None:
    models.says("probe", said, Response("there"))
    reply, attempts = obtained()
    assert reply.text == "there"
    assert len(attempts) == len(models.waits) == 1
    assert attempts[0]["model"] == "fake@scripted"
    assert attempts[0]["error"]


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_will_not_pass_is_not_tried_again(models: Scripted, status: int) -> None:
    models.says("probe", Response(status=status))
    assert len(exhausted().attempts) == len(models.server.ledger) == 1


def test_a_timeout_is_not_tried_again(models: Scripted) -> None:
    models.says("probe", Response(hang=True))
    error = exhausted(seconds=0.2)
    assert error.failure.outcome is Outcome.TIMEOUT
    assert len(error.attempts) == 1


def test_three_attempts_are_all_and_each_is_written_down(models: Scripted) -> None:
    models.says("probe", Response(status=500), Response(reset=True), Response(status=503))
    error = exhausted()
    assert error.failure.outcome is Outcome.SERVER_ERROR
    assert [each["outcome"] for each in error.attempts] == [
        "server_error", "unreachable", "server_error",
    ]  # fmt: skip
    assert len(models.server.ledger) == 3


def test_pauses_grow_and_differ() -> None:
    busy = ModelFailure(Outcome.RATE_LIMITED, "busy")
    first = {wait(busy, 1, None) for _ in range(50)}
    second = {wait(busy, 2, None) for _ in range(50)}
    assert len(first) > 1
    assert all(each is not None and 0.2 <= each <= 0.4 for each in first)
    assert all(each is not None and 0.4 <= each <= 0.8 for each in second)


def test_a_provider_is_left_alone_for_as_long_as_it_asks(models: Scripted) -> None:
    models.says("probe", Response(status=429, headers={"Retry-After": "7"}), Response("there"))
    obtained()
    assert models.waits == [7.0]


PAUSE = Response(status=429, headers={"Retry-After": "0.4"})


def in_turn(turn: str) -> dict[str, Any]:
    return {"turn": turn, "deadline": now() + timedelta(seconds=60)}


def test_a_turn_waits_for_a_provider_once_and_leaves_it_alone_while_it_rests(
    models: Scripted,
) -> None:
    turn, other = uuid4().hex, uuid4().hex
    models.says("probe", Response(status=429, headers={"Retry-After": "30"}))
    assert exhausted(**in_turn(turn)).failure.outcome is Outcome.RATE_LIMITED
    assert models.waits == [30.0]
    assert len(models.server.ledger) == 2
    for _ in range(3):
        error = exhausted(**in_turn(turn))
        assert error.failure.outcome is Outcome.BREAKER_OPEN
        assert "told this turn to come back" in str(error.failure)
    assert len(models.server.ledger) == 2
    exhausted(**in_turn(other))
    assert len(models.server.ledger) == 4


def test_who_has_rested_is_asked_again_but_not_waited_for_again(models: Scripted) -> None:
    turn = uuid4().hex
    models.says("probe", PAUSE)
    exhausted(**in_turn(turn))
    time.sleep(0.5)
    assert exhausted(**in_turn(turn)).failure.outcome is Outcome.RATE_LIMITED
    assert models.waits == [0.4]
    assert len(models.server.ledger) == 3
    time.sleep(0.5)
    models.says("probe", Response("there"))
    assert obtained(**in_turn(turn))[0].text == "there"


def test_a_rest_that_is_too_long_to_be_waited_for_spares_the_later_roles_a_call(
    models: Scripted,
) -> None:
    turn = uuid4().hex
    models.says("probe", Response(status=429, headers={"Retry-After": "300"}))
    exhausted(**in_turn(turn))
    assert exhausted(**in_turn(turn)).failure.outcome is Outcome.BREAKER_OPEN
    assert models.waits == []
    assert len(models.server.ledger) == 1


def test_a_pause_beyond_the_turns_deadline_is_not_begun(models: Scripted) -> None:
    models.says("probe", Response(status=429, headers={"Retry-After": "30"}))
    error = exhausted(deadline=now() + timedelta(seconds=20))
    assert error.failure.outcome is Outcome.RATE_LIMITED
    assert models.waits == []


def test_a_pause_of_minutes_is_not_begun(models: Scripted) -> None:
    models.says("probe", Response(status=429, headers={"Retry-After": "300"}))
    exhausted()
    assert models.waits == []


def test_without_time_left_nobody_is_asked(models: Scripted) -> None:
    error = exhausted(deadline=now() + timedelta(seconds=5.5))
    assert error.failure.outcome is Outcome.OUT_OF_TIME
    assert error.attempts == []
    assert models.server.ledger == []


def test_an_attempt_ends_before_the_turn_does(models: Scripted, settings: Settings) -> None:
    settings.TURN_DEADLINE_SECONDS = 10
    models.says("probe", Response(hang=True))
    deadline = now() + timedelta(seconds=2.5)
    assert exhausted(seconds=60, deadline=deadline).failure.outcome is Outcome.TIMEOUT
    assert now() < deadline


def test_who_heard_pieces_is_told_that_the_reply_begins_again(models: Scripted) -> None:
    heard: list[str] = []
    models.says("probe", Response(LONG, cut_after=2), BUSY, Response("there"))
    obtained(listener=Listener(heard.append, lambda: heard.append("--")))
    assert "".join(heard) == "word word wo--there"


def test_who_heard_nothing_is_told_nothing(models: Scripted) -> None:
    heard: list[str] = []
    models.says("probe", BUSY, Response("there"))
    obtained(listener=Listener(heard.append, lambda: heard.append("--")))
    assert heard == ["there"]
