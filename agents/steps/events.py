"""Events: what happens in a turn, published while it happens, in a Redis stream per turn.

The streams are for watching. What is true stands in PostgreSQL: a lost stream loses no answer.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import redis
from django.conf import settings

log = logging.getLogger(__name__)

LIVE_SECONDS = 3600
BLOCK_SECONDS = 1.0

Command = tuple[str | int, ...]


@cache
def connection() -> "redis.Redis":
    """Return this process's Redis client; its pool is safe to share between threads."""
    # Longer than any blocking read, or reading an idle stream would look like a dead server.
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=BLOCK_SECONDS + 5,
        socket_connect_timeout=2,
        decode_responses=True,
    )


class Aside:
    """A connection whose replies nobody waits for: what is said on it takes no round trip."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._link: Any = None
        self._process = 0

    def say(self, commands: Sequence[Command]) -> None:
        """Send commands. Raises redis.RedisError when they cannot be sent."""
        with self._lock:
            if self._process != os.getpid() or self._ended():
                self._open()
            self._link.send_packed_command(self._link.pack_commands(commands))

    def _ended(self) -> bool:
        try:
            return bool(self._link.can_read(timeout=0))
        except redis.RedisError:
            return True

    def _open(self) -> None:
        self._link = connection().connection_pool.make_connection()
        self._link.connect()
        self._link.send_command("CLIENT", "REPLY", "OFF")
        self._process = os.getpid()


_aside = Aside()


def publish(stream: str, event: str, **data: Any) -> None:
    """Append an event without waiting for Redis; one that is away costs the event only."""
    try:
        _aside.say(told(stream, event, **data))
    except redis.RedisError as error:
        log.warning("event %s of %s was not published: %s", event, stream, error)


def told(stream: str, event: str, **data: Any) -> tuple[Command, Command]:
    """Return the commands that append an event and keep its stream for a while."""
    return (
        ("XADD", stream, "*", "event", event, "data", json.dumps(data, default=str)),
        ("EXPIRE", stream, LIVE_SECONDS),
    )


def send(commands: Iterable[Command]) -> list[Any]:
    """Send commands in one round trip and return the replies.

    A Redis that is away costs them and nothing else; there are no replies then.
    """
    pipe = connection().pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)  # type: ignore[no-untyped-call]
    try:
        return pipe.execute()
    except redis.RedisError as error:
        log.warning("Redis is away, who waits is told later: %s", error)
        return []


Event = tuple[str, str, dict[str, Any]]


def follow(stream: str, *, seconds: float) -> Iterator[Event | None]:
    """Yield (id, event, data) from the stream, oldest first, and None for each idle second.

    Ends after `seconds`. None also comes while Redis is away: the caller then looks at the row.
    """
    end, after = time.monotonic() + seconds, "0-0"
    while time.monotonic() < end:
        found = _read(stream, after)
        if not found:
            yield None
        for entry, fields in found:
            after = entry
            yield entry, fields["event"], json.loads(fields["data"])


def _read(stream: str, after: str) -> list[tuple[str, dict[str, str]]]:
    try:
        found: Any = connection().xread({stream: after}, count=100, block=int(BLOCK_SECONDS * 1000))
    except redis.RedisError:
        time.sleep(BLOCK_SECONDS)
        return []
    return [entry for _, entries in found or () for entry in entries]
