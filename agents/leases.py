"""Leases: one thread per process renews the leases of the steps this process works on."""

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import Error, connection
from django.utils.timezone import now

from agents.models import Step

RENEW_SECONDS = 10.0

_held: set[uuid.UUID] = set()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def _namespace() -> str:
    """Process ids mean something only within one pid namespace (Linux; elsewhere there is one)."""
    marker = Path("/proc/self/ns/pid")
    return str(marker.stat().st_ino) if marker.exists() else "0"


def birth(pid: int) -> str | None:
    """Return when the process began, in the kernel's own clock; None when there is no such one."""
    try:
        # Field 22; the name in field 2 may itself hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


PLACE = f"{socket.gethostname()}/{_namespace()}"


def identity(pid: int) -> str:
    """Return the name under which the process `pid` of this machine claims steps."""
    return f"{PLACE}/{pid}/{birth(pid) or 0}"


WORKER = identity(os.getpid())


def died(worker: str) -> bool:
    """Whether `worker` was a process of this machine that is no more; False when unsure."""
    place, _, rest = worker.rpartition("/")
    place, _, pid = place.rpartition("/")
    return place == PLACE and rest != "0" and birth(int(pid)) != rest


@contextmanager
def renewed(token: uuid.UUID) -> Iterator[None]:
    """Keep the lease with this token alive while the block runs."""
    global _thread
    with _lock:
        _held.add(token)
        if _thread is None:
            _thread = threading.Thread(target=_renew_for_ever, name="leases", daemon=True)
            _thread.start()
    try:
        yield
    finally:
        with _lock:
            _held.discard(token)


def renew(tokens: set[uuid.UUID]) -> int:
    """Extend these leases; return how many were still ours."""
    open_steps = Step.objects.filter(lease_token__in=tokens, status=Step.Status.RUNNING)
    return open_steps.update(lease_until=now() + Step.LEASE)


def _renew_for_ever() -> None:
    pause = threading.Event()
    while not pause.wait(RENEW_SECONDS):
        with _lock:
            tokens = set(_held)
        if not tokens:
            continue
        try:
            renew(tokens)
            connection.close()
        except Error:
            # PostgreSQL is away: the next round may still be in time, else the lease lapses.
            continue
