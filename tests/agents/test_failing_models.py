"""Failing models: whatever goes wrong at a role's provider, the user gets an answer or a reason."""

from dataclasses import replace

import pytest
from pytest_django import Settings

from agents import events
from agents.bench.modelserver import Said
from agents.models import Envelope, Fault
from agents.names import Status
from tests.agents.turning import turn
from tests.sensible import Sensible

pytestmark = pytest.mark.django_db(transaction=True)

# Found well, but not so well that the evaluator need not look at it.
QUESTION = "Where does the water go when I press the button?"
ROLES = ("translation", "essence", "guardrails", "router", "evaluator", "response", "quality")
FAILURES: dict[str, Said] = {
    "truncated": Said('{"unfinished', finish="length"),
    "refused": Said("", finish="stop", refusal="I can't help with that."),
    "filtered": Said("", finish="content_filter"),
    "malformed": Said("{not json", finish="stop"),
    "empty": Said(""),
    "no choices": Said("x", choices=False),
    "wrong schema": Said('{"something": "else"}'),
    "key refused": Said(status=401),
    "model missing": Said(status=404),
    "rate limited": Said(status=429),
    "rate limited for long": Said(status=429, headers={"Retry-After": "300"}),
    "server error": Said(status=500),
    "rejected": Said(status=400),
    "hang": Said(hang=True),
    "slow drip": Said('{"a": "' + "x" * 400 + '"}', seconds=30.0),
    "reset": Said(reset=True),
    "cut off": Said('{"a": "' + "x" * 400 + '"}', cut_after=3),
}
# What the question itself could have provoked: then nobody vouches for it.
PROVOKED = {
    "truncated", "refused", "filtered", "malformed", "empty", "no choices", "wrong schema",
    "rejected", "hang", "slow drip", "cut off",
}  # fmt: skip


def asked(text: str = QUESTION) -> Envelope:
    """A turn whose provider has no record of failures."""
    events.connection().flushdb()
    return turn(text, collections=["teapot"])


@pytest.mark.parametrize("role", ROLES)
def test_no_failure_of_a_role_is_an_error_to_the_user(sensible: Sensible, role: str) -> None:
    for failure, said in FAILURES.items():
        sensible.reset()
        sensible.says(role, said)
        envelope = asked()
        told = f"{role}, {failure}: {envelope.status}, {envelope.payload.get('response', '')!r}"
        assert envelope.status in {Status.COMPLETED, Status.AWAITING_USER}, told
        assert envelope.payload["response"], told
        assert not Fault.objects.exists(), told
        assert envelope.payload["mode"] == "mixed" or role == "guardrails", told
        degraded = envelope.steps.exclude(degraded="").values_list("role", flat=True)
        if role == "guardrails" and failure in PROVOKED:
            assert envelope.status == Status.AWAITING_USER, told
            assert envelope.payload["clarification_reason"] == "scope_unclear", told
        else:
            assert role in degraded, told
            assert envelope.status == Status.COMPLETED, told
            assert envelope.payload["citations_used"], told


def test_the_clarification_in_fixed_words_replaces_a_model_that_fails(sensible: Sensible) -> None:
    for failure, said in FAILURES.items():
        sensible.reset()
        sensible.says("guardrails", {"guardrails_passed": False, "category": "off_topic"})
        sensible.says("clarification", said)
        envelope = asked("What is the weather in Paris?")
        assert envelope.status == Status.AWAITING_USER, failure
        assert envelope.payload["response"], failure
        assert not Fault.objects.exists(), failure


def test_with_the_provider_down_the_whole_turn_is_extractive(sensible: Sensible) -> None:
    for role in (*ROLES, "clarification", "memory"):
        sensible.says(role, Said(status=500))
    envelope = asked()
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
        sensible.says(role, Said(hang=True))
    envelope = asked()
    assert envelope.status in {Status.COMPLETED, Status.AWAITING_USER}
    assert envelope.payload["response"]
