"""Leases: one thread per process renews the leases of the steps this process works on."""

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection
from django.utils.timezone import now

from agents.bell import ring
from agents.errors import AgentError
from agents.models import Step
from agents.names import Role
from knowledge.liveness import identity

RENEW_SECONDS = 10.0
WORKER = identity(os.getpid())
# The attempt stays counted: only so the next one looks for replies in the journal.
HAND_BACK = """
UPDATE agents_step
   SET status = 'ready', lease_token = NULL, lease_until = NULL, available_at = now(),
       rung_at = now()
 WHERE lease_token = ANY(%s) AND status = 'running'
RETURNING envelope_id, number, role"""

# When each lease was last known to be ours, by time.monotonic. It passes while a process stands.
_held: dict[uuid.UUID, float] = {}
_lock = threading.Lock()
_thread: threading.Thread | None = None


class LostError(AgentError):
    """The lease lapsed: another worker may be doing this step by now."""


@contextmanager
def renewed(token: uuid.UUID) -> Iterator[None]:
    """Keep the lease with this token alive while the block runs."""
    global _thread
    with _lock:
        _held[token] = time.monotonic()
        if _thread is None:
            _thread = threading.Thread(target=_renew_for_ever, name="leases", daemon=True)
            _thread.start()
    try:
        yield
    finally:
        with _lock:
            _held.pop(token, None)


def insist(token: uuid.UUID) -> None:
    """Raise LostError when the lease may have lapsed: before anything that costs money.

    A process that was stopped for longer than a lease finds out here, without asking anybody.
    """
    with _lock:
        sure = _held.get(token)
    if sure is not None and time.monotonic() - sure > Step.LEASE.total_seconds():
        raise LostError


def renew(tokens: set[uuid.UUID]) -> int:
    """Extend these leases; return how many were still ours."""
    at = time.monotonic()
    ours = Step.objects.filter(lease_token__in=tokens, status=Step.Status.RUNNING)
    ours.update(lease_until=now() + Step.LEASE)
    kept = set(ours.values_list("lease_token", flat=True))
    with _lock:
        _held.update({token: at for token in _held if token in kept})
    return len(kept)


def hand_back() -> int:
    """Make the steps this process still works on ready for others; return how many it was."""
    with _lock:
        tokens = list(_held)
        _held.clear()
    with connection.cursor() as cursor:
        cursor.execute(HAND_BACK, [tokens])
        given = cursor.fetchall()
    for envelope_id, number, role in given:
        ring(envelope_id, number, Role(role))
    return len(given)


def _renew_for_ever() -> None:
    pause = threading.Event()
    while not pause.wait(RENEW_SECONDS):
        with _lock:
            tokens = set(_held)
        if not tokens:
            continue
        try:
            renew(tokens)
        except Error:
            # PostgreSQL is away: the next round may still be in time, else the lease lapses.
            continue
        finally:
            connection.close()
