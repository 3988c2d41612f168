"""Retry: one call with its retries, within the time the turn and its provider have left."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.timezone import now

from agents.llm import breaker
from agents.llm.outcomes import UNASKED, ModelFailure, Outcome
from agents.llm.requests import Reply, Request
from agents.steps import events
from knowledge.providers import parse_model_name

log = logging.getLogger(__name__)
ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.4
# Whoever asks for more is left to what works without a model, or, if there is a second model, to
# that: soon, because it can answer while the first rests.
LONGEST_WAIT_SECONDS, LONGEST_WITH_SECOND = 60.0, 3.0
# What works without a model needs these to finish the turn, on a machine that is busy too; of a
# turn that is given little time, this share.
RESERVE_SECONDS, RESERVE_SHARE = 5.0, 0.1
# Less than this is no time for a model.
LEAST_SECONDS = 1.0
AGAIN = frozenset(
    {Outcome.RATE_LIMITED, Outcome.SERVER_ERROR, Outcome.UNREACHABLE, Outcome.CUT_OFF}
)
LATE = frozenset({Outcome.TIMEOUT, Outcome.TOO_SLOW})
# That a provider was late in a turn is noted for longer than a turn lasts unless it is set to.
LATE_KEY, LATE_KEPT_SECONDS = "late:", 600
# A provider that was late in a turn gets in this turn no longer to begin than those that work need
# also when they are busy, and of the time that is left this share: however often it is late, some
# remains.
BEGIN_SECONDS = 5.0
LATE_SHARE = 0.5
OnText = Callable[[str], None]
sleep: Callable[[float], None] = time.sleep


class RetriesExhausted(Exception):
    """No attempt brought a reply."""

    def __init__(self, failure: ModelFailure, attempts: list[dict[str, Any]]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.attempts = attempts


@dataclass
class Listener:
    """Who is handed the pieces of a reply, and told when those so far are void."""

    on_text: OnText | None = None
    on_restart: Callable[[], None] | None = None
    has_text: bool = False

    def add(self, text: str) -> None:
        """Hand on a piece."""
        self.has_text = True
        if self.on_text:
            self.on_text(text)

    def restart(self) -> None:
        """Say that the reply begins again, if anything of it was told."""
        if self.has_text and self.on_restart:
            self.on_restart()
        self.has_text = False


def nothing() -> None:
    """Stand for what need not be done."""


def send_with_retries(
    request: Request,
    *,
    seconds: float,
    deadline: datetime | None = None,
    turn: Any = None,
    has_other_model: bool = False,
    listener: Listener,
    before_attempt: Callable[[], None] = nothing,
) -> tuple[Reply, list[dict[str, Any]]]:
    """Return the reply and the failed attempts before it. Raises Failed.

    One attempt takes `seconds` at most, and none goes on beyond the deadline of the `turn`. What
    `before_attempt` raises before an attempt, because its reply would be of no use, ends them all.
    `has_other_model`: another one can be asked instead of waiting long for this one.
    """
    attempts: list[dict[str, Any]] = []
    failure: ModelFailure | None = None
    longest = LONGEST_WITH_SECOND if has_other_model else LONGEST_WAIT_SECONDS
    while True:
        before_attempt()
        start = time.monotonic()
        try:
            return _attempt(request, seconds, deadline, turn, listener), attempts
        except ModelFailure as error:
            if error.outcome in UNASKED:
                raise RetriesExhausted(failure or error, attempts) from error
            failure = error
            attempts.append(_attempt_record(request, error, time.monotonic() - start))
        pause = wait(failure, len(attempts), time_left(deadline), longest)
        if pause is None:
            raise RetriesExhausted(failure, attempts) from failure
        listener.restart()
        sleep(pause)


def _attempt(
    request: Request, seconds: float, deadline: datetime | None, turn: Any, listener: Listener
) -> Reply:
    left = time_left(deadline)
    if left is not None and left < LEAST_SECONDS:
        raise ModelFailure(Outcome.OUT_OF_TIME, "The turn has no time left to ask a model.")
    provider = parse_model_name(request.model)[1]
    limit = limits(provider, turn, seconds, left)
    breaker.admit(provider, seconds=limit.whole)
    try:
        reply: Reply = import_string(settings.MODEL_TRANSPORT)(
            request, seconds=limit.whole, begin=limit.begin, on_text=listener.add
        )
    except ModelFailure as failure:
        breaker.failed(provider, failure, hurried=limit.hurried)
        note_lateness(provider, turn, failure)
        raise
    breaker.succeeded(provider)
    return reply


def _attempt_record(request: Request, failure: ModelFailure, seconds: float) -> dict[str, Any]:
    return {
        "model": request.model,
        "outcome": failure.outcome,
        "seconds": round(seconds, 3),
        "error": str(failure),
    }


def wait(
    failure: ModelFailure, attempts: int, left: float | None, longest: float = LONGEST_WAIT_SECONDS
) -> float | None:
    """Return how many seconds to wait before the next attempt; None: there is none.

    As long as the provider asked, or else twice as long each time, and up to half of it less by
    chance, so that those who failed together don't come again together.
    """
    if failure.outcome not in AGAIN or attempts >= ATTEMPTS:
        return None
    most = FIRST_WAIT_SECONDS * 2 ** (attempts - 1)
    pause = failure.retry_after
    if pause is None:
        pause = most * (1 - random.random() / 2)  # noqa: S311
    if pause > longest or (left is not None and pause + LEAST_SECONDS > left):
        return None
    return pause


def time_left(deadline: datetime | None) -> float | None:
    """Return how many seconds models may still take; None: as many as they want."""
    if deadline is None:
        return None
    reserve = min(RESERVE_SECONDS, RESERVE_SHARE * settings.TURN_DEADLINE_SECONDS)
    return (deadline - now()).total_seconds() - reserve


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
    whole = min(seconds, left * LATE_SHARE)
    begin = min(whole, BEGIN_SECONDS)
    return Limits(whole, begin, hurried=begin < min(seconds, BEGIN_SECONDS))


def note_lateness(provider: str, turn: Any, failure: ModelFailure) -> None:
    """Note how a call of this turn failed, if it was for its time."""
    if turn is None or failure.outcome not in LATE:
        return
    try:
        events.connection().set(_key(provider, turn), 1, ex=LATE_KEPT_SECONDS)
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
    return f"{LATE_KEY}{provider}:{turn}"
