"""Leases: who may have lost one does nothing more that costs money."""

import time
from functools import partial
from uuid import UUID, uuid4

import pytest

from agents import leases
from agents.models import Step
from prompts.prompt import Prompt
from tests.agents.claiming import claim
from tests.agents.llm.asking import GOOD, Verdict, llm
from tests.conftest import Begin
from tests.scripted import Asked, Said, Scripted

LONG = Step.LEASE.total_seconds() + 1


def stand(token: UUID) -> None:
    """As if the process had been stopped for longer than a lease."""
    leases.STEPS.sure[token] = time.monotonic() - LONG


def ask(token: UUID, probe: Prompt) -> None:
    model = llm(insist=partial(leases.insist, token))
    model.ask(probe, Verdict, question="Is it good?", hour="noon")


def test_who_was_stopped_for_longer_than_a_lease_asks_no_model(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", GOOD)
    token = uuid4()
    with leases.STEPS.renewed(token):
        stand(token)
        with pytest.raises(leases.LostError):
            ask(token, probe)
    assert not models.server.ledger


def test_who_was_stopped_while_a_model_failed_does_not_ask_again(
    models: Scripted, probe: Prompt
) -> None:
    token = uuid4()

    def script(asked: Asked) -> Said:
        stand(token)
        return Said(status=500)

    models.says("probe", script)
    with leases.STEPS.renewed(token), pytest.raises(leases.LostError):
        ask(token, probe)
    assert len(models.server.ledger) == 1


def test_a_lease_that_was_renewed_is_ours_again(begin: Begin) -> None:
    held = claim(begin().pk, 1)
    assert held
    with leases.STEPS.renewed(held.token):
        stand(held.token)
        with pytest.raises(leases.LostError):
            leases.insist(held.token)
        assert leases.STEPS.renew({held.token}) == 1
        leases.insist(held.token)


def test_a_lease_that_another_took_is_not_ours_again(begin: Begin) -> None:
    envelope = begin()
    held = claim(envelope.pk, 1)
    assert held
    with leases.STEPS.renewed(held.token):
        stand(held.token)
        envelope.steps.update(lease_token=uuid4())
        assert leases.STEPS.renew({held.token}) == 0
        with pytest.raises(leases.LostError):
            leases.insist(held.token)
