"""Leases: who may have lost one does nothing more that costs money."""

import time
from functools import partial
from uuid import UUID, uuid4

import pytest

from agents.models import Step
from agents.steps import step_lease
from prompts.prompt import Prompt
from tests.agents.claiming import claimed
from tests.agents.llm.probe import GOOD, Verdict, llm
from tests.conftest import Begin
from tests.scripted import Call, Response, Scripted

LONG = Step.LEASE.total_seconds() + 1


def stand(token: UUID) -> None:
    """As if the process had been stopped for longer than a lease."""
    step_lease.LEASES.renewed_at[token] = time.monotonic() - LONG


def ask(token: UUID, probe: Prompt) -> None:
    model = llm(before_attempt=partial(step_lease.require, token))
    model.ask(probe, Verdict, question="Is it good?", hour="noon")


def test_who_was_stopped_for_longer_than_a_lease_asks_no_model(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    token = uuid4()
    with step_lease.LEASES.renewed(token):
        stand(token)
        with pytest.raises(step_lease.LapsedError):
            ask(token, probe)
    assert not models.server.ledger


def test_who_was_stopped_while_a_model_failed_does_not_ask_again(
    models: Scripted, probe: Prompt
) -> None:
    token = uuid4()

    def script(asked: Call) -> Response:
        stand(token)
        return Response(status=500)

    models.says("probe", script)
    with step_lease.LEASES.renewed(token), pytest.raises(step_lease.LapsedError):
        ask(token, probe)
    assert len(models.server.ledger) == 1


def test_a_lease_that_was_renewed_is_ours_again(begin: Begin) -> None:
    step = claimed(begin().pk, 1)
    with step_lease.LEASES.renewed(step.token):
        stand(step.token)
        with pytest.raises(step_lease.LapsedError):
            step_lease.require(step.token)
        assert step_lease.LEASES.renew({step.token}) == 1
        step_lease.require(step.token)


def test_a_lease_that_another_took_is_not_ours_again(begin: Begin) -> None:
    envelope = begin()
    step = claimed(envelope.pk, 1)
    with step_lease.LEASES.renewed(step.token):
        stand(step.token)
        envelope.steps.update(lease_token=uuid4())
        assert step_lease.LEASES.renew({step.token}) == 0
        with pytest.raises(step_lease.LapsedError):
            step_lease.require(step.token)
