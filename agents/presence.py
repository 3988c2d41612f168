"""Presence: which queues have a worker that listens, and how to name the ones that don't."""

import json
from typing import Any

import redis
from celery import bootsteps
from celery.worker.consumer import Consumer
from kombu.exceptions import KombuError

from agents.events import connection
from agents.leases import WORKER
from agents.names import Role
from knowledge.names import INGEST_QUEUE

BEAT_SECONDS = 5.0
KEY = "docent:worker:"
SWEEPER = "sweeper"
# The workers that are no role's, and what they leave word of.
BESIDES = {"ingest": INGEST_QUEUE, SWEEPER: SWEEPER}


class Presence(bootsteps.StartStopStep):
    """Repeats on the consumer's own timer which queues it reads.

    A worker that lost its consumer while its process lives falls silent: its timer stops.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Consumer, **options: Any) -> None:
        self.timer: Any = None
        self.queues: list[str] = []
        super().__init__(parent, **options)

    def start(self, parent: Consumer) -> None:
        """Leave word now and every few seconds."""
        self.queues = sorted(parent.app.amqp.queues.consume_from)
        announce(self.queues)
        self.timer = parent.timer.call_repeatedly(BEAT_SECONDS, announce, (self.queues,))

    def stop(self, parent: Consumer) -> None:
        """Withdraw the word."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
        try:
            connection().delete(f"{KEY}{WORKER}/{self.queues[0]}")
        except (redis.RedisError, KombuError):
            # Redis is away: the word ends by itself.
            return


def announce(queues: list[str]) -> None:
    """Leave word that this process reads `queues`; it holds for three beats."""
    try:
        connection().set(f"{KEY}{WORKER}/{queues[0]}", json.dumps(queues), ex=int(BEAT_SECONDS * 3))
    except redis.RedisError:
        # The next beat tries again.
        return


def consumers() -> dict[str, int]:
    """Return how many workers listen to each queue. Raises redis.RedisError."""
    client = connection()
    counts: dict[str, int] = {}
    for word in client.mget(list(client.scan_iter(KEY + "*", count=500)) or [KEY]):
        for queue in json.loads(word) if word else ():
            counts[queue] = counts.get(queue, 0) + 1
    return counts


def missing() -> list[Role]:
    """Return the roles whose queue nobody listens to. Raises redis.RedisError."""
    listening = consumers()
    return [role for role in Role if not listening.get(role.queue)]


def idle() -> list[str]:
    """Return what is missing besides roles: ingest, sweeper. Raises redis.RedisError."""
    listening = consumers()
    return [name for name, queue in BESIDES.items() if not listening.get(queue)]
