"""Lateness: a provider that let a turn wait in vain gets little more of that turn's time.

Otherwise one that hangs costs every step its whole time limit, and the turn ends before the answer
that needs no model was written. Kept in Redis; with Redis away nobody was late.
"""

import logging
from dataclasses import dataclass
from typing import Any

import redis

from agents import events
from agents.llm.outcomes import ModelFailure, Outcome

log = logging.getLogger(__name__)

KEY = "late:"
# Longer than a turn lasts unless it is set to.
KEPT_SECONDS = 600
# Servers that work begin within these, also when they are busy.
BEGIN_SECONDS = 5.0
# Of the time that is left: however often it is late, some remains.
SHARE = 0.5
LATE = frozenset({Outcome.TIMEOUT, Outcome.TOO_SLOW})


@dataclass(frozen=True)
class Limits:
    """The seconds that a reply may take."""

    whole: float
    begin: float  # until anything of it arrives
    hurried: bool  # less than a working provider may need


def limits(provider: str, turn: Any, seconds: float, left: float | None) -> Limits:
    """Return the limits of a call that its role gives `seconds` and its turn at most `left`.

    `left` None: nobody waits, so nothing is late.
    """
    if left is None:
        return Limits(seconds, seconds, hurried=False)
    if not _was_late(provider, turn):
        whole = min(seconds, left)
        return Limits(whole, whole, hurried=whole < seconds)
    whole = min(seconds, left * SHARE)
    begin = min(whole, BEGIN_SECONDS)
    return Limits(whole, begin, hurried=begin < min(seconds, BEGIN_SECONDS))


def note(provider: str, turn: Any, failure: ModelFailure) -> None:
    """Note how a call of this turn failed, if it was for its time."""
    if turn is None or failure.outcome not in LATE:
        return
    try:
        events.connection().set(_key(provider, turn), 1, ex=KEPT_SECONDS)
    except redis.RedisError as error:
        log.warning("that %s was late is not noted: %s", provider, error)


def _was_late(provider: str, turn: Any) -> bool:
    if turn is None:
        return False
    try:
        return bool(events.connection().exists(_key(provider, turn)))
    except redis.RedisError as error:
        log.warning("whether %s was late is not known: %s", provider, error)
        return False


def _key(provider: str, turn: Any) -> str:
    return f"{KEY}{provider}:{turn}"
