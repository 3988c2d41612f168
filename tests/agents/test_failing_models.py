"""Failing models: with the provider down or silent, the user gets an answer all the same."""

import json
from dataclasses import replace

import pytest
from pytest_django import Settings

from agents.llm import pace
from agents.names import Status
from assistant.lab import scripted_replies
from assistant.lab.model_server import Call, Response
from tests.agents.failing import ROLES, ask
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)


def test_with_the_provider_down_the_whole_turn_is_extractive(sensible: Sensible) -> None:
    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, Response(status=500))
    envelope = ask()
    assert envelope.status == Status.COMPLETED
    assert envelope.payload["mode"] == "extractive"
    assert envelope.payload["citations_used"]
    # The breaker spares the later roles their attempts.
    assert len(sensible.server.ledger) < 3 * len(ROLES)


def test_a_provider_that_hangs_at_every_call_does_not_use_up_the_turn(
    sensible: Sensible, settings: Settings
) -> None:
    settings.TURN_DEADLINE_SECONDS = 12
    settings.MODELS = {
        asker: replace(choice, timeout=30.0) for asker, choice in settings.MODELS.items()
    }
    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, Response(hang=True))
    envelope = ask()
    assert envelope.status in {Status.COMPLETED, Status.AWAITING_USER}
    assert envelope.payload["response"]


def test_a_turn_waits_for_a_provider_that_hangs_only_once(
    sensible: Sensible, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "BEGIN_SECONDS", 0.1)
    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, Response(hang=True))
    envelope = ask()
    calls = envelope.model_calls.order_by("pk").values_list("role", "outcome", "error")
    assert [role for role, outcome, _ in calls if outcome == "timeout"] == [
        "translation", "response",
    ]  # fmt: skip
    assert "did not answer within 0.6 s" in calls[0][2]
    for role, outcome, error in calls[1:]:
        if role == "response":
            assert "did not begin to answer within 0.1 s" in error
        else:
            assert outcome == "out_of_time"
            assert "too slow for this turn" in error
    assert len(sensible.server.ledger) == 2
    assert envelope.status == Status.COMPLETED
    assert envelope.payload["citations_used"]


def test_a_turn_asks_no_model_any_more_once_three_roles_in_a_row_failed(sensible: Sensible) -> None:
    for role in ("translation", "essence", "guardrails", "router"):
        sensible.says(role, Response("I would rather not."))
    envelope = ask()
    assert not {"evaluator", "response", "quality"} & {*sensible.server.prompts()}
    assert envelope.payload["mode"] == "extractive"
    assert envelope.payload["citations_used"]
    step = envelope.steps.get(role="response")
    assert step.mode == "extractive"
    assert step.degraded.startswith("breaker_open: No model is asked any more in this turn: ")


def test_roles_that_fail_between_others_that_do_not_end_nothing(sensible: Sensible) -> None:
    for role in ("translation", "guardrails", "evaluator"):
        sensible.says(role, Response("I would rather not."))
    envelope = ask()
    assert envelope.payload["mode"] == "mixed"
    assert envelope.steps.get(role="response").mode == "model"


def test_a_slow_server_answers_an_ordinary_question(
    sensible: Sensible, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything takes a fiftieth of the time of a server that reads 45 tokens a second."""
    monkeypatch.setattr(pace, "BEGIN_SECONDS", 0.1)
    monkeypatch.setattr(pace, "LEAST_SECONDS", 0.02)
    monkeypatch.setattr(pace, "AT_ONCE_SECONDS", 0.02)
    response = replace(settings.MODELS["response"], timeout=1.2)
    settings.MODELS = settings.MODELS | {"response": response}

    def slow(call: Call) -> Response:
        usual = scripted_replies.sensible(call)
        text = usual if isinstance(usual, str) else json.dumps(usual)
        seconds = (len(call.system) + len(call.user)) / 180 / 50
        return Response(text, seconds=seconds, first_after=0.9 * seconds)

    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, slow)
    envelope = ask()
    assert envelope.status == Status.COMPLETED
    assert envelope.payload["citations_used"]
    assert envelope.steps.get(role="response").mode == "model"
    # Its prompt takes longer than the role has, which is known from the translation's.
    assert "essence" not in sensible.server.prompts()
    assert "too slow for this turn" in envelope.steps.get(role="essence").degraded
