"""Verdicts: whether a reply that arrived is one that can be used."""

from django.conf import settings

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply
from knowledge.providers import parts

SHOWN = 200


def named(model: str) -> str:
    """Return how sentences call `model@provider`: with the address it is asked at."""
    server = settings.PROVIDERS.get(parts(model)[1])
    return f"{model} at {server.base_url}" if server else model


def refuse_unusable(reply: Reply, *, whole: bool = True) -> None:
    """Raise ModelFailure for a reply that is none.

    One that was cut at its limit is none when it must be `whole`, or was cut before its first word.
    """
    model = named(reply.model)
    match reply.finish_reason:
        case "content_filter":
            raise ModelFailure(
                Outcome.FILTERED,
                f"{model}: the provider's content filter kept the reply back; ask for it to be "
                "relaxed there, or take another model.",
            )
        case "refusal":
            raise ModelFailure(
                Outcome.REFUSED, f"{model} refused to answer: {reply.text[:SHOWN]!r}"
            )
        case "length" if whole or not reply.text.strip():
            raise ModelFailure(
                Outcome.TRUNCATED,
                f"{model}: the reply was cut at its limit of tokens: raise <ROLE>_MAX_TOKENS.",
                said=reply.text.strip(),
            )
    if not reply.text.strip():
        raise ModelFailure(
            Outcome.EMPTY,
            f"{model}: the reply is empty; a model that thinks first needs more <ROLE>_MAX_TOKENS.",
            problem="the reply is empty",
        )
