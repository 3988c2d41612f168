"""A command that runs alone does the steps of its turn in its own process."""

import time

from agents import lent_worker
from agents.models import Envelope
from agents.names import Role
from agents.steps import events, presence
from tests.conftest import Begin

PATIENCE_SECONDS = 60


def ended(envelope: Envelope) -> bool:
    """Whether the turn ends before patience does."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not envelope.ended and time.monotonic() < until:
        time.sleep(0.05)
        envelope.refresh_from_db()
    return envelope.ended


def test_a_turn_ends_without_any_other_worker(begin: Begin) -> None:
    with lent_worker.working():
        assert presence.missing_roles() == []
        envelope = begin()
        assert ended(envelope)
    roles = set(envelope.steps.values_list("role", flat=True))
    assert {Role.MANAGER, Role.LANG, Role.GUARDRAILS, Role.SEARCH} <= roles
    assert not envelope.steps.filter(status="running").exists()


def test_it_says_that_it_listens_no_longer_when_it_ends(transactional_db: None) -> None:
    # With tables: it answers bells, and those that another test left may still ring.
    with lent_worker.working():
        pass
    assert presence.missing_roles() == presence.needed_roles()


def test_a_step_whose_bell_was_lost_is_done_all_the_same(begin: Begin) -> None:
    envelope = begin()
    events.connection().delete(Role.MANAGER.queue)
    with lent_worker.working():
        assert ended(envelope)
