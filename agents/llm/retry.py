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

from agents.llm import breaker, pace
from agents.llm.outcomes import UNASKED, ModelFailure, Outcome
from agents.llm.pace import LEAST_SECONDS, time_left
from agents.llm.requests import Choice, Reply, Request
from agents.steps import events
from knowledge.providers import parse_model_name

log = logging.getLogger(__name__)
ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.4
# Whoever asks for more is left to what works without a model, or, if there is a second model, to
# that: soon, because it can answer while the first rests.
LONGEST_WAIT_SECONDS, LONGEST_WITH_SECOND = 60.0, 3.0
AGAIN = frozenset(
    {Outcome.RATE_LIMITED, Outcome.SERVER_ERROR, Outcome.UNREACHABLE, Outcome.CUT_OFF}
)
# That a provider asked a turn for a pause is noted for longer than a turn lasts, usually.
REST_KEY, REST_KEPT_SECONDS = "rest:", 600
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
    role: str = "",
    seconds: float,
    deadline: datetime | None = None,
    turn: Any = None,
    has_other_model: bool = False,
    listener: Listener,
    before_attempt: Callable[[], None] = nothing,
    answer: Choice | None = None,
) -> tuple[Reply, list[dict[str, Any]]]:
    """Return the reply and the failed attempts before it. Raises RetriesExhausted.

    One attempt takes `seconds` at most, and none goes on beyond the deadline of the `turn`, in
    which a provider's wish to be left alone for a while is waited out once. What
    `before_attempt` raises before an attempt, because its reply would be of no use, ends them all.
    `has_other_model`: another one can be asked instead of waiting long for this one. `answer`: who
    writes the answer of the turn, if not whom the settings name.
    """
    attempts: list[dict[str, Any]] = []
    failure: ModelFailure | None = None
    longest = LONGEST_WITH_SECOND if has_other_model else LONGEST_WAIT_SECONDS
    provider = parse_model_name(request.model)[1]
    while True:
        before_attempt()
        start = time.monotonic()
        try:
            if not attempts:
                _refuse_resting(provider, turn)
            limit = pace.limits(request, role, turn, seconds, time_left(deadline), answer)
            return _attempt(request, role, limit, turn, listener), attempts
        except ModelFailure as error:
            if error.outcome in UNASKED:
                raise RetriesExhausted(failure or error, attempts) from error
            failure = error
            attempts.append(_attempt_record(request, error, time.monotonic() - start))
        pause = wait(failure, len(attempts), time_left(deadline), longest)
        may_wait = failure.retry_after is None or _note_rest(provider, turn, failure.retry_after)
        if pause is None or not may_wait:
            raise RetriesExhausted(failure, attempts) from failure
        listener.restart()
        sleep(pause)


def _attempt(
    request: Request,
    role: str,
    limit: pace.Limits,
    turn: Any,
    listener: Listener,
) -> Reply:
    provider = parse_model_name(request.model)[1]
    breaker.admit(provider, seconds=limit.whole)
    try:
        reply: Reply = import_string(settings.MODEL_TRANSPORT)(
            request,
            seconds=limit.whole,
            begin=limit.begin,
            on_text=listener.add,
            on_void=listener.restart,
            turn=turn,
        )
    except ModelFailure as failure:
        breaker.failed(provider, failure, hurried=limit.hurried)
        if limit.telling:
            pace.note_lateness(request.model, turn, failure)
        raise
    breaker.succeeded(provider)
    pace.note_reply(request, role, reply)
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


def _refuse_resting(provider: str, turn: Any) -> None:
    """Raise ModelFailure (BREAKER_OPEN) while the provider rests that told this turn so."""
    try:
        until: Any = events.connection().get(_rest_key(provider, turn)) if turn else None
    except redis.RedisError as error:
        log.warning("whether %s rests is not known: %s", provider, error)
        return
    if until and time.time() < float(until):
        raise ModelFailure(
            Outcome.BREAKER_OPEN,
            f"{provider} is not asked now: it told this turn to come back in "
            f"{float(until) - time.time():.1f} s.",
        )


def _note_rest(provider: str, turn: Any, seconds: float) -> bool:
    """Note until when a provider wants to be left alone; return if this turn had not heard so."""
    if turn is None:
        return True
    until, kept = time.time() + seconds, REST_KEPT_SECONDS
    key = _rest_key(provider, turn)
    try:
        is_first = events.connection().set(key, until, nx=True, ex=kept)
        if not is_first:
            events.connection().set(key, until, ex=kept)
    except redis.RedisError as error:
        log.warning("that %s rests is not noted: %s", provider, error)
        return True
    return bool(is_first)


def _rest_key(provider: str, turn: Any) -> str:
    return f"{REST_KEY}{provider}:{turn}"
