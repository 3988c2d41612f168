"""Lease: the right of a process to a step, renewed while it works, and outlasting an outage."""

import os
import time
import uuid
from collections.abc import Callable, Collection
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection
from django.utils.timezone import now

from agents.errors import AgentError
from agents.models import Step
from agents.names import Role
from agents.steps.doorbell import ring
from knowledge.lease import Leases
from knowledge.liveness import identity

WORKER = identity(os.getpid())
# The attempt stays counted: only so the next one looks for replies in the journal.
HAND_BACK = """
UPDATE agents_step
   SET status = 'ready', lease_token = NULL, lease_until = NULL, available_at = now(),
       rung_at = now()
 WHERE lease_token = ANY(%s) AND status = 'running'
RETURNING envelope_id, number, role"""


class LostError(AgentError):
    """The lease lapsed: another worker may be doing this step by now."""


def _extend(tokens: Collection[uuid.UUID]) -> set[uuid.UUID]:
    ours = Step.objects.filter(lease_token__in=tokens, status=Step.Status.RUNNING)
    ours.update(lease_until=now() + Step.LEASE)
    return {token for token in ours.values_list("lease_token", flat=True) if token}


STEPS = Leases(_extend, Step.LEASE)


def insist(token: uuid.UUID) -> None:
    """Raise LostError when the lease may have lapsed: before anything that costs money."""
    if STEPS.may_have_lapsed(token):
        raise LostError


def hand_back() -> int:
    """Make the steps this process still works on ready for others; return how many it was."""
    with connection.cursor() as cursor:
        cursor.execute(HAND_BACK, [STEPS.drop()])
        given = cursor.fetchall()
    for envelope_id, number, role in given:
        ring(envelope_id, number, Role(role))
    return len(given)


PAUSE_SECONDS = 0.5
T = TypeVar("T")


def outlast(act: Callable[[], T]) -> T:
    """Return what `act` returns, tried again while PostgreSQL is away.

    For as long as a lease lasts; then it raises what `act` raises. Nobody may hear whether a
    transaction was committed that was under way: `act` must take effect once when done twice.
    """
    until = time.monotonic() + Step.LEASE.total_seconds()
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            connection.close()
            time.sleep(PAUSE_SECONDS)
