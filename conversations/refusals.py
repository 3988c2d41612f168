"""Refusals: what was refused because too much was asked, counted for who watches.

Redis counts, for all web processes together. A Redis that is away counts nothing, and refuses
nobody.
"""

from enum import StrEnum
from typing import Any

from agents.steps import events

COUNTS = "refusals"


class Kind(StrEnum):
    """What there was too much of."""

    KEY = "key"  # requests with one key
    ADDRESS = "address"  # requests from one address
    LOGIN = "login"  # wrong passwords
    TURNS = "turns"  # questions under way
    BUSY = "busy"  # requests that waited for the database
    STREAMS = "streams"  # clients that follow events


def note(kind: Kind) -> None:
    """Count one more."""
    events.send([("HINCRBY", COUNTS, kind.value, 1)])


def counts() -> dict[Kind, int]:
    """Return how often each kind was refused since Redis counts. Raises RedisError."""
    stored: Any = events.connection().hgetall(COUNTS)
    return {kind: int(stored.get(kind.value, 0)) for kind in Kind}
