"""Verdicts: whether a reply that arrived is one that can be used."""

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply


def refuse_unusable(reply: Reply, *, whole: bool = True) -> None:
    """Raise ModelFailure for a reply that is none; cut at its limit counts when `whole`."""
    match reply.finish_reason:
        case "content_filter":
            raise ModelFailure(
                Outcome.FILTERED,
                f"{reply.model}: the provider's content filter took the reply away",
            )
        case "refusal":
            raise ModelFailure(
                Outcome.REFUSED, f"{reply.model} refused to answer: {reply.text[:200]!r}"
            )
        case "length" if whole:
            raise ModelFailure(
                Outcome.TRUNCATED,
                f"{reply.model}: the reply was cut at its limit of tokens; raise <ROLE>_MAX_TOKENS",
            )
    if not reply.text.strip():
        raise ModelFailure(Outcome.EMPTY, f"{reply.model}: the reply is empty")
