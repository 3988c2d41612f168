"""Failures: what can go wrong at a provider, by its outcome and in a sentence for the operator."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import openai
from django.utils.timezone import now
from httpx2 import ConnectTimeout, Headers

from agents.llm.outcomes import ModelFailure, Outcome, with_address
from knowledge.postgres_text import storable
from knowledge.providers import Provider

SHOWN = 200  # characters of what a server said
FILTERS = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation")
NO_CREDIT = ("insufficient_quota", "insufficient_credits", "billing")
BAD_KEY = ("api_key_invalid", "api key not valid", "invalid api key", "incorrect api key")
NO_MODEL = ("model_not_found", "invalid model", "unknown model", "not a valid model")
TOO_LONG = ("context_length", "maximum context", "context length", "too long", "context window")


def without_key(model: str, server: Provider) -> ModelFailure:
    """Return the failure of a provider that needs a key and has none."""
    return ModelFailure(
        Outcome.KEY_REFUSED,
        f"{with_address(model)} cannot be asked without a key: set {server.key_variable}.",
    )


def unreachable(error: openai.APIConnectionError, model: str, server: Provider) -> ModelFailure:
    """Return the failure for a connection that did not come about, or broke before a reply."""
    reason = (
        "no connection in time" if is_connect_timeout(error) else _redacted(_cause(error), server)
    )
    return ModelFailure(
        Outcome.UNREACHABLE,
        f"{with_address(model)} cannot be reached ({reason}): check that the server runs, and "
        f"its address, which is {server.name.upper()}_BASE_URL.",
    )


def broken_off(error: Exception, model: str, server: Provider) -> ModelFailure:
    """Return the failure for a reply that began and did not end."""
    return ModelFailure(
        Outcome.CUT_OFF,
        f"{with_address(model)} broke off its reply ({_redacted(_cause(error), server)}).",
    )


def too_late(model: str, seconds: float, characters: int) -> ModelFailure:
    """Return the failure for a reply that was not there, or not whole, after so many seconds."""
    if characters:
        return ModelFailure(
            Outcome.TOO_SLOW,
            f"{with_address(model)} was still writing after {seconds:.3g} s "
            f"({characters:,} characters so far): raise <ROLE>_TIMEOUT, "
            "lower <ROLE>_MAX_TOKENS, or take a faster model.",
        )
    return ModelFailure(
        Outcome.TIMEOUT,
        f"{with_address(model)} did not answer within {seconds:.3g} s: raise <ROLE>_TIMEOUT, or "
        "see what keeps the server.",
    )


def not_begun(model: str, seconds: float) -> ModelFailure:
    """Return the failure for a reply of which nothing came, of a provider that was late before."""
    return ModelFailure(
        Outcome.TIMEOUT,
        f"{with_address(model)} did not begin to answer within {seconds:.3g} s; it gets no more "
        "since it let this turn wait in vain before: see what keeps the server.",
    )


def no_completion(body: str, model: str, server: Provider) -> ModelFailure:
    """Return the failure for an answer that is something else than a chat completion."""
    return ModelFailure(
        Outcome.SERVER_ERROR,
        f"{with_address(model)} answered with something that is no chat completion: check "
        f"{server.name.upper()}_BASE_URL; it said {_redacted(body, server)!r}.",
    )


def refusal(error: openai.APIStatusError) -> str:
    """Return what a server said against a request, without what it quotes of it."""
    body: dict[str, Any] = error.body if isinstance(error.body, dict) else {}
    if isinstance(inner := body.get("error"), dict):
        body = inner
    parts = [body.get(part) for part in ("param", "message", "detail")]
    if isinstance(body.get("detail"), list):  # FastAPI: [{"loc", "msg", "input"}]
        parts[2] = [[each.get("loc"), each.get("msg")] for each in body["detail"] if each]
    return " ".join(str(each) for each in parts if each) or error.response.text[:500]


def is_filtered(error: openai.APIStatusError) -> bool:
    """Whether a request was refused for what it is about."""
    return error.status_code in {400, 403} and _mentions(error.response.text, FILTERS)


def of_response(error: openai.APIStatusError, model: str, server: Provider) -> ModelFailure:
    """Return the failure for an answer with a status of failure."""
    if error.response.has_redirect_location:
        return redirected(error, model, server)
    body = error.response.text
    wait = retry_after(error.response.headers)
    return of_status(error.status_code, refusal(error), model, server, whole=body, wait=wait)


def redirected(error: openai.APIStatusError, model: str, server: Provider) -> ModelFailure:
    """Return the failure for an answer that sends the request to another address."""
    target = _redacted(error.response.headers["location"].partition("?")[0], server)
    return ModelFailure(
        Outcome.MODEL_MISSING,
        f"{with_address(model)} sends requests on to {target} ({error.status_code}), which is not "
        f"followed: set {server.name.upper()}_BASE_URL to where the API is.",
    )


def of_error_in_reply(value: Any, model: str, server: Provider) -> ModelFailure:
    """Return the failure for an error that a server put where a reply should be."""
    error = value if isinstance(value, dict) else {"message": str(value)}
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    whole = json.dumps(error, ensure_ascii=False)
    return of_status(status, str(error.get("message") or whole), model, server, whole=whole)


def of_status(
    status: int,
    reason: str,
    model: str,
    server: Provider,
    *,
    whole: str = "",
    wait: float | None = None,
) -> ModelFailure:
    """Return the failure for a status, with what the server said."""
    name, detail = with_address(model), _redacted(reason, server)
    address, key = f"{server.name.upper()}_BASE_URL", server.key_variable
    match outcome := _outcome(status, whole.lower()):
        case Outcome.KEY_REFUSED if status in {402, 429}:
            message = f"{name} wants to be paid ({status}): check your credit there."
        case Outcome.KEY_REFUSED:
            message = (
                f"{name} refuses the key ({status}): check {key}, and that the key may use this "
                "model."
            )
        case Outcome.MODEL_MISSING:
            message = (
                f"{name} was not found ({status}): check the model's name, that the server has "
                f"loaded it, and {address}."
            )
        case Outcome.RATE_LIMITED:
            delay = f" and asks to wait {wait:.3g} s" if wait else ""
            message = f"{name} is asked more than it allows ({status}){delay}: {detail}"
        case Outcome.SERVER_ERROR:
            message = f"{name} fails ({status}): {detail}"
        case _ if _mentions(whole, TOO_LONG):
            message = (
                f"{name} finds the request too long ({status}): take a model with a longer "
                f"context, or lower MAX_CONTEXT_LENGTH or HISTORY_TOKENS; it said: {detail}"
            )
        case _:
            message = f"{name} does not take this request ({status}): {detail}"
    return ModelFailure(outcome, message, retry_after=wait)


def _outcome(status: int, body: str) -> Outcome:
    """Return what a status comes to; some servers have one for everything and only say it."""
    if status in {401, 402, 403} or (status == 429 and _mentions(body, NO_CREDIT)):
        return Outcome.KEY_REFUSED
    if status == 429:
        return Outcome.RATE_LIMITED
    if status >= 500 or status in {408, 409, 425}:
        return Outcome.SERVER_ERROR
    if _mentions(body, BAD_KEY):
        return Outcome.KEY_REFUSED
    if status == 404 or _mentions(body, NO_MODEL):
        return Outcome.MODEL_MISSING
    return Outcome.REJECTED


def retry_after(headers: Headers) -> float | None:
    """Return for how many seconds a provider asks to be left alone; it may say so as a date."""
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (_aware(until) - now()).total_seconds())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return max(0.0, number) if isfinite(number) else None


def is_connect_timeout(error: openai.APIConnectionError) -> bool:
    """Whether time ran out before there was a connection."""
    return isinstance(error.__cause__, ConnectTimeout)


def _cause(error: Exception) -> str:
    cause = error.__cause__ or error
    return str(cause) or type(cause).__name__


def _mentions(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text.lower() for word in words)


def _redacted(value: str, server: Provider) -> str:
    """Return what was said, shortened and without the key."""
    text = value.replace(server.api_key, "…") if server.api_key else value
    return storable(" ".join(text.split()))[:SHOWN]
