"""Presence: which queues have a worker that listens, and how to name the ones that don't."""

import json
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from celery import bootsteps
from celery.worker.consumer import Consumer
from django.conf import settings
from kombu.exceptions import KombuError

from agents.names import ONLY_ON_ROUTE, Role
from agents.steps.events import connection
from agents.steps.step_lease import WORKER
from knowledge.identifiers import INGEST_QUEUE

BEAT_SECONDS = 5.0
KEY_PREFIX = "docent:worker:"
# The keys of all announcements: looking for them among those of all turns would take long.
KEYS = "docent:workers"
# What each of them announced last, until it says that it ends: who fell silent is known by it.
LAST = "docent:workers:last"
REMEMBERED_SECONDS = 24 * 3600
# Where the sweeper names queues whose workers say that they listen and take nothing.
DEAF = "docent:deaf"
SWEEPER = "sweeper"
# The workers that are no role's, and what they announce.
SERVICES = {"ingest": INGEST_QUEUE, SWEEPER: SWEEPER}


@dataclass(frozen=True)
class Announcement:
    """What one worker announced: the queues it reads, and since when (seconds of the epoch)."""

    queues: list[str]
    since: float


@dataclass(frozen=True)
class Silence:
    """A worker that announced itself, did not say that it ends, and is heard no more."""

    worker: str  # host, namespace, process id and its start, see knowledge.liveness
    queues: list[str]
    last: float  # when it was heard last, in seconds of the epoch


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
        """Announce now and every few seconds."""
        self.queues = sorted(parent.app.amqp.queues.consume_from)
        announcement = (self.queues, time.time())
        announce(*announcement)
        self.timer = parent.timer.call_repeatedly(BEAT_SECONDS, announce, announcement)

    def stop(self, parent: Consumer) -> None:
        """Withdraw the announcement."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
        withdraw(self.queues)


def announce(queues: list[str], since: float | None = None) -> None:
    """Announce that this process reads `queues` since that time (now); it holds three beats.

    A file per queue says the same to a healthcheck, which may not cost the start of a program: it
    is touched as long as Redis takes the announcement and nobody calls the queue deaf.
    """
    announcement = json.dumps({"queues": queues, "since": since or time.time()})
    last = json.dumps({"worker": WORKER, "queues": queues, "last": time.time()})
    try:
        pipe = connection().pipeline(transaction=False)
        pipe.set(_key(queues), announcement, ex=int(BEAT_SECONDS * 3))
        pipe.sadd(KEYS, _key(queues))
        pipe.hset(LAST, _key(queues), last)
        pipe.get(DEAF)
        *_, deaf = pipe.execute()
    except redis.RedisError:
        # The next beat tries again.
        return
    for queue in set(queues) - set(json.loads(deaf or "[]")):
        # A folder that can't be written costs the healthcheck, and nothing else.
        with suppress(OSError):
            heartbeat_file(queue).touch()


def withdraw(queues: list[str]) -> None:
    """Take back what this process announced of `queues`; with Redis away it ends by itself."""
    with suppress(redis.RedisError, KombuError):
        connection().delete(_key(queues))
        connection().hdel(LAST, _key(queues))


def _key(queues: list[str]) -> str:
    return f"{KEY_PREFIX}{WORKER}/{queues[0]}"


def heartbeat_file(queue: str) -> Path:
    """Return the file that is touched as long as a worker of this machine hears the queue."""
    return Path(tempfile.gettempdir(), f"docent-hears-{queue}")


def report_deaf(queues: list[str]) -> None:
    """Tell the workers of these queues that they don't hear; it holds for two beats."""
    try:
        connection().set(DEAF, json.dumps(queues), ex=int(BEAT_SECONDS * 2))
    except redis.RedisError:
        # Without Redis nobody hears anything, and their heartbeats stop by themselves.
        return


def announcements() -> list[Announcement]:
    """Return what every worker that is there has announced. Raises redis.RedisError."""
    client = connection()
    keys = list(client.smembers(KEYS))
    if not keys:
        return []
    values = dict(zip(keys, client.mget(keys), strict=True))
    if expired := [key for key, value in values.items() if not value]:
        client.srem(KEYS, *expired)
    return [Announcement(**json.loads(value)) for value in values.values() if value]


def silences() -> list[Silence]:
    """Return the workers that fell silent of late, the latest first. Raises redis.RedisError."""
    client = connection()
    said = client.hgetall(LAST)
    found = {key: Silence(**json.loads(value)) for key, value in said.items()}
    long_ago = time.time() - REMEMBERED_SECONDS
    if forgotten := [key for key, each in found.items() if each.last < long_ago]:
        client.hdel(LAST, *forgotten)
    kept = [key for key in found if key not in forgotten]
    heard = client.mget(kept) if kept else []
    silent = [found[key] for key, value in zip(kept, heard, strict=True) if value is None]
    return sorted(silent, key=lambda each: -each.last)


def consumers() -> dict[str, int]:
    """Return how many workers listen to each queue. Raises redis.RedisError."""
    return Counter(queue for announcement in announcements() for queue in announcement.queues)


def missing_roles() -> list[Role]:
    """Return the roles whose queue nobody listens to. Raises redis.RedisError.

    Roles of routes that are closed are not missed.
    """
    listening = consumers()
    return [role for role in needed_roles() if not listening.get(role.queue)]


def needed_roles() -> list[Role]:
    """Return the roles that a turn may come to."""
    return [role for role in Role if ONLY_ON_ROUTE.get(role, "") in {"", *settings.ROUTES}]


def missing_services() -> list[str]:
    """Return what is missing besides roles: ingest, sweeper. Raises redis.RedisError."""
    listening = consumers()
    return [name for name, queue in SERVICES.items() if not listening.get(queue)]
