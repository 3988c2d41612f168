"""Failures: what can go wrong at an endpoint, said so that the operator knows what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

import openai

from knowledge.embedding.errors import (
    EndpointError,
    KeyRefused,
    Malformed,
    ModelMissing,
    Overloaded,
    Refused,
    TooSlow,
    Unreachable,
)
from knowledge.providers import Provider

SHOWN = 200  # characters of what a server said


@contextmanager
def explained(model: str, provider: Provider) -> Iterator[None]:
    """Turn the client's errors into ours, which name the model, the address and the remedy."""
    try:
        yield
    except Malformed as error:
        raise Malformed(f"{model} at {provider.base_url} cannot be used: {error}.") from error
    except openai.OpenAIError as error:
        raise failure(error, model, provider) from error


def failure(error: openai.OpenAIError, model: str, provider: Provider) -> EndpointError:
    """Return our error for the client's."""
    at = f"{model} at {provider.base_url}"
    match error:
        case openai.APITimeoutError():
            return TooSlow(f"{at} did not answer in time.")
        case openai.APIConnectionError():
            reason = str(error.__cause__ or error)[:SHOWN]
            return Unreachable(f"{at} cannot be reached: {reason}")
        case openai.APIStatusError():
            return answered(error, at, provider)
    return Unreachable(f"{at} cannot be asked: {said(error, provider)}")


def answered(error: openai.APIStatusError, at: str, provider: Provider) -> EndpointError:
    """Return our error for an answer with a status of failure."""
    status, reason = error.status_code, said(error, provider)
    if status in {401, 403}:
        return KeyRefused(f"{at} refuses the key ({status}): check {provider.key_variable}.")
    if status == 404:
        return ModelMissing(
            f"{at} was not found (404): check the model's name, and that the server has loaded it."
        )
    if status == 429:
        return Overloaded(f"{at} is asked more than it allows (429): {reason}")
    if status >= 500 or status in {408, 409}:
        return Unreachable(f"{at} fails ({status}): {reason}")
    return Refused(f"{at} does not answer such requests ({status}): {reason}")


def said(error: openai.OpenAIError, provider: Provider) -> str:
    """Return what the server said, shortened and without the key."""
    text = str(error)
    return (text.replace(provider.api_key, "…") if provider.api_key else text)[:SHOWN]
