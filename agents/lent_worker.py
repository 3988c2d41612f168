"""Lent worker: does the steps of turns in threads of this process, where no worker runs.

For a command that asks one question: a worker of Celery in a process of its own takes longer to
start than the answer takes. Leases, bells and retries are those of every worker.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import redis
from django.db import Error, connection
from django.utils.timezone import now

from agents.manager import perform
from agents.models import Step
from agents.names import Role
from agents.steps import events, presence, step_lease
from agents.steps.doorbell import ring_command

log = logging.getLogger(__name__)

# At most three roles of a turn work at the same time; the manager listens by itself.
AGENT_THREADS = 3
LISTEN_SECONDS = 0.2
# Rings what nobody heard, as the sweeper does: the next attempt of a step that failed.
UNHEARD_AFTER = timedelta(seconds=1)
MOST_RUNG = 100
# For steps that are still under way when the block ends; then others may have them.
STOP_SECONDS = 8.0


@contextmanager
def working() -> Iterator[None]:
    """Be a consumer for the queue of every role during the block."""
    queues = sorted(role.queue for role in Role)
    ended = threading.Event()
    agents = [role for role in Role if role is not Role.MANAGER]
    threads = [
        threading.Thread(target=_announce, args=(queues, ended), name="presence", daemon=True),
        threading.Thread(target=_listen, args=([Role.MANAGER], ended), name="manager", daemon=True),
        *(
            threading.Thread(target=_listen, args=(agents, ended), name="agents", daemon=True)
            for _ in range(AGENT_THREADS)
        ),
    ]
    presence.announce(queues)
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        presence.withdraw(queues)
        until = time.monotonic() + STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            step_lease.hand_back()


def _announce(queues: list[str], ended: threading.Event) -> None:
    """Say again and again that this process listens, and ring for what went unheard."""
    beat = time.monotonic()
    while not ended.wait(UNHEARD_AFTER.total_seconds()):
        if time.monotonic() - beat > presence.BEAT_SECONDS:
            presence.announce(queues)
            beat = time.monotonic()
        with _surviving_outages():
            ring_unheard()


def ring_unheard() -> None:
    """Ring for the steps that have been due for a moment and that nobody has begun."""
    due = Step.objects.filter(
        status=Step.Status.READY, available_at__lt=now() - UNHEARD_AFTER
    ).values_list("envelope_id", "number", "role")[:MOST_RUNG]
    events.send([ring_command(envelope, number, Role(role)) for envelope, number, role in due])


def _listen(roles: Sequence[Role], ended: threading.Event) -> None:
    """Do what the bells of these roles ask for until the block ends."""
    role_of = {role.queue: role for role in roles}
    while not ended.is_set():
        with _surviving_outages():
            if bell := events.connection().brpop(list(role_of), LISTEN_SECONDS):
                perform(role_of[str(bell[0])])


@contextmanager
def _surviving_outages() -> Iterator[None]:
    """Do the block as a thread that must not end: what failed is rung for again."""
    try:
        yield
    except (Error, redis.RedisError) as error:
        log.warning("PostgreSQL or Redis is away: %s", error)
        time.sleep(LISTEN_SECONDS)
    finally:
        connection.close()
