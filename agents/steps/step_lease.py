"""Lease of a step: the right of this process to it, renewed while it works.

It also bounds how long an outage of PostgreSQL is waited out: afterwards another may have the step.
"""

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
# Between two attempts to reach PostgreSQL.
PAUSE_SECONDS = 0.5
# The attempt stays counted: only so the next one looks for replies in the journal.
HAND_BACK = """
UPDATE agents_step
   SET status = 'ready', lease_token = NULL, lease_until = NULL, available_at = now(),
       rung_at = now()
 WHERE lease_token = ANY(%s) AND status = 'running'
RETURNING envelope_id, number, role"""

T = TypeVar("T")


class LapsedError(AgentError):
    """The lease lapsed: another worker may be doing this step by now."""


def _extend(tokens: Collection[uuid.UUID]) -> set[uuid.UUID]:
    steps = Step.objects.filter(lease_token__in=tokens, status=Step.Status.RUNNING)
    steps.update(lease_until=now() + Step.LEASE)
    return {token for token in steps.values_list("lease_token", flat=True) if token}


LEASES = Leases(_extend, Step.LEASE)


def require(token: uuid.UUID) -> None:
    """Raise LapsedError when the lease may have lapsed: before anything that costs money."""
    if LEASES.may_have_lapsed(token):
        raise LapsedError


def hand_back() -> int:
    """Make the steps this process still works on ready for others; return how many it was."""
    with connection.cursor() as cursor:
        cursor.execute(HAND_BACK, [LEASES.drop()])
        steps = cursor.fetchall()
    for envelope_id, number, role in steps:
        ring(envelope_id, number, Role(role))
    return len(steps)


def retry_outage(act: Callable[[], T]) -> T:
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
