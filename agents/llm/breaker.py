"""Breaker: leaves a provider alone that keeps failing, for all processes at once.

Closed, every call goes through. Five failures in a row within half a minute open it: nobody asks,
so nobody waits. After a quarter of a minute one call at a time tries; a reply closes it, another
failure opens it again. It lives in Redis; with Redis away it counts as closed.
"""

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import redis
from django.conf import settings

from agents.llm.outcomes import ModelFailure, Outcome
from agents.steps import events

log = logging.getLogger(__name__)

FAILURES = 5
WITHIN_SECONDS = 30
OPEN_SECONDS = 15
# Nobody asked for so long: what was known of it is out of date.
KEPT_SECONDS = 600
KEY = "breaker:"
# How the provider fails whoever asks, and not only this question.
COUNTED = frozenset(
    {
        Outcome.UNREACHABLE,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.TIMEOUT,
        Outcome.CUT_OFF,
    }
)
# Says neither that the provider works nor that it doesn't.
NEUTRAL = frozenset({Outcome.RATE_LIMITED, Outcome.TIMEOUT, Outcome.TOO_SLOW})

# Of times in milliseconds: whether a call may go through (0), or when it may be tried again.
ADMIT = """
local till = tonumber(redis.call('HGET', KEYS[1], 'until') or 0)
if till == 0 then return 0 end
local now, lease = tonumber(ARGV[1]), tonumber(ARGV[2])
local probe = tonumber(redis.call('HGET', KEYS[1], 'probe') or 0)
if now < till then return till end
if now < probe then return probe end
redis.call('HSET', KEYS[1], 'probe', now + lease)
return 0
"""
# A failure that came after the time was out is that of a probe: the time begins again.
FAIL = """
local now, most, within, open = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local till = tonumber(redis.call('HGET', KEYS[1], 'until') or 0)
if till > now then return 0 end
if till == 0 then
    redis.call('LPUSH', KEYS[2], now)
    redis.call('LTRIM', KEYS[2], 0, most - 1)
    redis.call('PEXPIRE', KEYS[2], within)
    local first = tonumber(redis.call('LINDEX', KEYS[2], most - 1) or 0)
    if first < now - within then return 0 end
end
redis.call('HSET', KEYS[1], 'until', now + tonumber(open), 'last', ARGV[5])
redis.call('HDEL', KEYS[1], 'probe')
redis.call('PEXPIRE', KEYS[1], ARGV[6])
redis.call('DEL', KEYS[2])
return 1
"""


@dataclass(frozen=True)
class State:
    """How it stands with one provider."""

    name: str = "closed"  # closed, open, half-open
    until: datetime | None = None  # when it may be tried again
    failures: int = 0  # in a row, while it is closed
    last: str = ""  # why it opened


def admit(provider: str, *, seconds: float) -> None:
    """Raise ModelFailure (BREAKER_OPEN) while the provider is left alone.

    A call that is let through to try it has `seconds` to say what came of it.
    """
    try:
        till = _run(ADMIT, provider, _now(), int(seconds * 1000) + 1000)
        last: Any = events.connection().hget(KEY + provider, "last") if till else ""
    except redis.RedisError as error:
        log.warning("the breaker of %s is not known: %s", provider, error)
        return
    if till:
        raise ModelFailure(
            Outcome.BREAKER_OPEN,
            f"{provider} is not asked until {_moment(till):%H:%M:%S} UTC, because it kept failing; "
            f"the last time: {last}",
        )


def succeeded(provider: str) -> None:
    """Note that the provider answered."""
    _quietly(provider, lambda: events.connection().delete(*_keys(provider)))


def failed(provider: str, failure: ModelFailure, *, hurried: bool = False) -> None:
    """Note how a call failed; `hurried`: it had less time than its role gives it."""
    asked_to_wait = failure.outcome is Outcome.RATE_LIMITED and failure.retry_after is not None
    hurried = failure.outcome is Outcome.TIMEOUT and hurried
    if failure.outcome in COUNTED and not asked_to_wait and not hurried:
        times = (FAILURES, WITHIN_SECONDS * 1000, OPEN_SECONDS * 1000)
        details = (str(failure), KEPT_SECONDS * 1000)
        _quietly(provider, lambda: _run(FAIL, provider, _now(), *times, *details))
    elif failure.outcome in NEUTRAL:
        # Not the one that tries it any longer.
        _quietly(provider, lambda: events.connection().hdel(KEY + provider, "probe"))
    else:
        succeeded(provider)


def states() -> dict[str, State]:
    """Return how it stands with each provider, by name. Raises RedisError."""
    return {name: _state(name) for name in settings.PROVIDERS}


def _state(provider: str) -> State:
    fields: Any = events.connection().hgetall(KEY + provider)
    if "until" not in fields:
        return State(failures=_failures(provider))
    till = int(fields["until"])
    name = "open" if _now() < till else "half-open"
    return State(name, _moment(till), 0, fields.get("last", ""))


def _failures(provider: str) -> int:
    since = _now() - WITHIN_SECONDS * 1000
    times: Any = events.connection().lrange(_keys(provider)[1], 0, -1)
    return sum(int(each) >= since for each in times)


def forget(provider: str) -> None:
    """Close it, whatever was noted."""
    events.connection().delete(*_keys(provider))


def _keys(provider: str) -> tuple[str, str]:
    return KEY + provider, f"{KEY}{provider}:failures"


def _run(script: str, provider: str, *values: Any) -> int:
    result: Any = events.connection().eval(script, 2, *_keys(provider), *values)
    return int(result)


def _quietly(provider: str, note: Any) -> None:
    try:
        note()
    except redis.RedisError as error:
        log.warning("the breaker of %s was not told: %s", provider, error)


def _now() -> int:
    return int(time.time() * 1000)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
