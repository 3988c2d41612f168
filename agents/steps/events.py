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

STREAM_SECONDS = 3600
# Three times what a turn of 60 steps comes to whose model writes until the deadline.
BOUND = ("MAXLEN", "~", 10_000)
BLOCK_SECONDS = 1.0
MOST_CONNECTIONS = 10_000

Command = tuple[str | int, ...]


@cache
def connection() -> "redis.Redis":
    """Return this process's Redis client; its pool is safe to share between threads."""
    # Longer than any blocking read, or reading an idle stream would look like a dead server.
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=BLOCK_SECONDS + 5,
        socket_connect_timeout=2,
        # As many as threads may wait for an answer; redis-py would refuse the hundred and first.
        max_connections=MOST_CONNECTIONS,
        decode_responses=True,
    )


class Publisher:
    """A connection whose replies nobody waits for: sending takes no round trip."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._process = 0

    def send(self, commands: Sequence[Command]) -> None:
        """Send commands. Raises redis.RedisError when they cannot be sent."""
        with self._lock:
            if self._process != os.getpid() or self._is_closed():
                self._open()
            self._connection.send_packed_command(self._connection.pack_commands(commands))

    def _is_closed(self) -> bool:
        try:
            return bool(self._connection.can_read(timeout=0))
        except redis.RedisError:
            return True

    def _open(self) -> None:
        self._connection = connection().connection_pool.make_connection()
        self._connection.connect()
        self._connection.send_command("CLIENT", "REPLY", "OFF")
        self._process = os.getpid()


_publisher = Publisher()


def publish(stream: str, event: str, **data: Any) -> None:
    """Append an event without waiting for Redis; one that is away costs the event only."""
    try:
        _publisher.send(event_commands(stream, event, **data))
    except redis.RedisError as error:
        log.warning("event %s of %s was not published: %s", event, stream, error)


def event_commands(stream: str, event: str, **data: Any) -> tuple[Command, Command]:
    """Return the commands that append an event and keep its stream for a while."""
    return (
        ("XADD", stream, *BOUND, "*", "event", event, "data", json.dumps(data, default=str)),
        ("EXPIRE", stream, STREAM_SECONDS),
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
        entries = _read(stream, after)
        if not entries:
            yield None
        for after, fields in entries:
            yield after, fields["event"], json.loads(fields["data"])


def _read(stream: str, after: str) -> list[tuple[str, dict[str, str]]]:
    try:
        milliseconds = int(BLOCK_SECONDS * 1000)
        streams: Any = connection().xread({stream: after}, count=100, block=milliseconds)
    except redis.RedisError:
        time.sleep(BLOCK_SECONDS)
        return []
    return [entry for _, entries in streams or () for entry in entries]
