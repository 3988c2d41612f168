"""Pace: how quick models were lately, and how much of its turn's time a call gets.

The answer comes first: what it will take is kept for it. A role before it gets what is left beside
that, at most its own limit, and is left to its rules, unasked, when it would need more. A provider
that let a turn wait in vain is asked in this turn for the answer only, which has to begin at once.
"""

import json
import logging
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

import redis
from django.conf import settings
from django.utils.timezone import now

from agents.llm.outcomes import ModelFailure, Outcome, with_address
from agents.llm.requests import Choice, Reply, Request
from agents.names import Role
from agents.steps import events
from knowledge.providers import parse_model_name

log = logging.getLogger(__name__)
# What works without a model needs these to finish the turn, on a machine that is busy too; of a
# turn that is given little time, this share.
RESERVE_SECONDS, RESERVE_SHARE = 5.0, 0.1
# Less than this is no time for a model.
LEAST_SECONDS = 1.0
# A provider that was late has to begin the answer within what those that work need also when they
# are busy, and the answer gets this share of what is left: another way to it needs time, too.
BEGIN_SECONDS, LATE_SHARE = 5.0, 0.5
LATE = frozenset({Outcome.TIMEOUT, Outcome.TOO_SLOW})
# Who lets a call wait in vain for half as long as the answer may take at most is late; one with
# less time may have waited behind others of the same turn.
TELLING_SHARE = 0.5
# That a provider was late in a turn is noted for longer than a turn lasts unless it is set to.
LATE_KEY, LATE_KEPT_SECONDS = "late:", 600
# So many calls of a model are known, for so long: who was too slow is tried again afterwards.
PACE_KEY, CALLS, KEPT_SECONDS = "pace:", 32, 600
# Of what passes before the first word this is not for reading: the same for a prompt of any length.
AT_ONCE_SECONDS = 1.0
# What is kept for the answer beyond the estimate; while nothing is known, this share of the time.
MARGIN, UNKNOWN_SHARE = 1.25, 0.5
# Characters that are read and written: of an answer beside its passages, and of any other reply.
ANSWER_READ, ANSWER_WRITTEN, WRITTEN = 6000, 1000, 400
# Nothing is kept for an answer that is there, or will not come.
AFTER_ANSWER = frozenset({Role.QUALITY.value, Role.CLARIFICATION.value})


@dataclass(frozen=True)
class Call:
    """How long one call took: seconds for characters."""

    role: str
    read: int
    begin: float  # seconds until the first word
    written: int
    rest: float  # seconds from there to the last


@dataclass(frozen=True)
class Limits:
    """The seconds that a reply may take."""

    whole: float
    begin: float  # until anything of it arrives
    hurried: bool  # less than a working provider may need
    telling: bool = True  # whoever takes longer is too slow for the answer, too


def time_left(deadline: datetime | None) -> float | None:
    """Return how many seconds models may still take; None: as many as they want."""
    if deadline is None:
        return None
    reserve = min(RESERVE_SECONDS, RESERVE_SHARE * settings.TURN_DEADLINE_SECONDS)
    return (deadline - now()).total_seconds() - reserve


def limits(
    request: Request,
    role: str,
    turn: Any,
    seconds: float,
    left: float | None,
    answer: Choice | None = None,
) -> Limits:
    """Return the limits of a call that its role gives `seconds` and its turn at most `left`.

    `left` None: nobody waits, so nothing is late. `answer` is who writes the answer of the turn,
    for which time is kept; None: whom the settings name. Raises ModelFailure (OUT_OF_TIME) when
    the call would take more than it may.
    """
    if left is None:
        return Limits(seconds, seconds, hurried=False)
    if left < LEAST_SECONDS:
        raise ModelFailure(Outcome.OUT_OF_TIME, "The turn has no time left to ask a model.")
    is_late = _was_late(_provider(request.model), turn)
    if role == Role.RESPONSE:
        return _limits_of_answer(seconds, left, is_late=is_late)
    if is_late:
        raise _too_slow(request.model, "it let this turn wait in vain before")
    kept = 0.0 if role in AFTER_ANSWER else seconds_of_answer(left, answer)
    whole = min(seconds, left - kept)
    need = estimate(request.model, role, characters(request)) or 0.0
    if need > whole or left - kept < LEAST_SECONDS:
        share = f", since {kept:.0f} s are kept for the answer" if whole < seconds else ""
        times = f"about {max(need, LEAST_SECONDS):.0f} s and may take {max(whole, 0):.0f}"
        raise _too_slow(request.model, f"it would take {times}{share}")
    longest = (answer or settings.MODELS[Role.RESPONSE.value]).timeout
    telling = whole >= TELLING_SHARE * min(longest, left)
    return Limits(whole, whole, hurried=whole < seconds, telling=telling)


def _limits_of_answer(seconds: float, left: float, *, is_late: bool) -> Limits:
    if not is_late:
        whole = min(seconds, left)
        return Limits(whole, whole, hurried=whole < seconds)
    whole = min(seconds, left * LATE_SHARE)
    begin = min(whole, BEGIN_SECONDS)
    return Limits(whole, begin, hurried=begin < min(seconds, BEGIN_SECONDS))


def seconds_of_answer(left: float, answer: Choice | None = None) -> float:
    """Return how many of the seconds that are left are kept for the answer of a model."""
    choice = answer or settings.MODELS[Role.RESPONSE.value]
    if not choice.model:
        return 0.0
    need = estimate(choice.model, Role.RESPONSE, settings.MAX_CONTEXT_LENGTH + ANSWER_READ)
    return float(min(choice.timeout, left * UNKNOWN_SHARE if need is None else need * MARGIN))


def estimate(model: str, role: str, read: int) -> float | None:
    """Return the seconds a call will take by the model's last calls; None: there were none.

    By those of the same role if there were any: its replies are alike, and of its prompt the
    server may keep the same part.
    """
    calls = _calls(model)
    own = [call for call in calls if call.role == role]
    calls = own or calls
    if not calls:
        return None
    at_once = median(min(call.begin, AT_ONCE_SECONDS) for call in calls)
    reading = median(max(call.begin - AT_ONCE_SECONDS, 0) / max(call.read, 1) for call in calls)
    writing = median(call.rest / max(call.written, 1) for call in calls)
    usual = ANSWER_WRITTEN if role == Role.RESPONSE else WRITTEN
    written = median(call.written for call in own) if own else usual
    return at_once + reading * read + writing * written


def characters(request: Request) -> int:
    """Return how many characters a model reads of a request."""
    return sum(len(str(message["content"])) for message in request.messages)


def note_reply(request: Request, role: str, reply: Reply) -> None:
    """Note how long a model took for a reply."""
    begin = reply.seconds if reply.first_token_seconds is None else reply.first_token_seconds
    call = [role, characters(request), begin, len(reply.text), reply.seconds - begin]
    key = PACE_KEY + request.model
    try:
        with events.connection().pipeline() as commands:
            commands.lpush(key, json.dumps(call))
            commands.ltrim(key, 0, CALLS - 1)
            commands.expire(key, KEPT_SECONDS)
            commands.execute()
    except redis.RedisError as error:
        log.warning("how quick %s was is not noted: %s", request.model, error)


def forget(model: str) -> None:
    """Know nothing of the model any more."""
    events.connection().delete(PACE_KEY + model)


def _calls(model: str) -> list[Call]:
    try:
        values: Any = events.connection().lrange(PACE_KEY + model, 0, -1)
    except redis.RedisError as error:
        log.warning("how quick %s was is not known: %s", model, error)
        return []
    return [Call(*json.loads(value)) for value in values]


def note_lateness(model: str, turn: Any, failure: ModelFailure) -> None:
    """Note how a call of this turn failed, if it was for its time."""
    if turn is None or failure.outcome not in LATE:
        return
    provider = _provider(model)
    try:
        events.connection().set(_late_key(provider, turn), 1, ex=LATE_KEPT_SECONDS)
    except redis.RedisError as error:
        log.warning("that %s was late is not noted: %s", provider, error)


def _was_late(provider: str, turn: Any) -> bool:
    if turn is None:
        return False
    try:
        return bool(events.connection().exists(_late_key(provider, turn)))
    except redis.RedisError as error:
        log.warning("whether %s was late is not known: %s", provider, error)
        return False


def _late_key(provider: str, turn: Any) -> str:
    return f"{LATE_KEY}{provider}:{turn}"


def _provider(model: str) -> str:
    return parse_model_name(model)[1]


def _too_slow(model: str, reason: str) -> ModelFailure:
    return ModelFailure(
        Outcome.OUT_OF_TIME, f"{with_address(model)} is too slow for this turn: {reason}."
    )
