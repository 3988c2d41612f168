"""Failing models: with the provider down or silent, the user gets an answer all the same."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from agents.llm import breaker, retry
from agents.names import Status
from assistant.lab.model_server import Response
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
    monkeypatch.setattr(retry, "BEGIN_SECONDS", 0.1)
    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, Response(hang=True))
    envelope = ask()
    calls = envelope.model_calls.order_by("pk").values_list("outcome", "error")
    first, *others = [f"{outcome} {error}" for outcome, error in calls]
    assert "did not answer within 0.6 s" in first
    timeouts = [call for call in others if call.startswith("timeout")]
    assert len(timeouts) == breaker.FAILURES - 1
    assert all("did not begin to answer within 0.1 s" in call for call in timeouts)
    assert all(call.startswith("breaker_open") for call in others if call not in timeouts)
    assert envelope.status in {Status.COMPLETED, Status.AWAITING_USER}
    assert envelope.payload["response"]
