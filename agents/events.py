"""Events: what happens in a turn, published while it happens, in a Redis stream per turn.

The streams are for watching. What is true stands in PostgreSQL: a lost stream loses no answer.
"""

import json
import logging
import time
from collections.abc import Iterable, Iterator
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


def publish(stream: str, event: str, **data: Any) -> None:
    """Append an event; a Redis that is away costs the event and nothing else."""
    send(told(stream, event, **data))


def told(stream: str, event: str, **data: Any) -> tuple[Command, Command]:
    """Return the commands that append an event and keep its stream for a while."""
    return (
        ("XADD", stream, "*", "event", event, "data", json.dumps(data, default=str)),
        ("EXPIRE", stream, LIVE_SECONDS),
    )


def send(commands: Iterable[Command]) -> None:
    """Send commands in one round trip; a Redis that is away costs them and nothing else."""
    pipe = connection().pipeline(transaction=False)
    for command in commands:
        pipe.execute_command(*command)  # type: ignore[no-untyped-call]
    try:
        pipe.execute()
    except redis.RedisError as error:
        log.warning("Redis is away, who waits is told later: %s", error)


Event = tuple[str, str, dict[str, Any]]


def follow(stream: str, *, after: str = "0-0", seconds: float) -> Iterator[Event | None]:
    """Yield (id, event, data) from the stream, oldest first, and None for each idle second.

    Ends after `seconds`. None also comes while Redis is away: the caller then looks at the row.
    """
    end = time.monotonic() + seconds
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
