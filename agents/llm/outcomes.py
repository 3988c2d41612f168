"""Outcomes: everything a call of a model can come to, by name."""

from collections.abc import Sequence
from enum import StrEnum

from django.conf import settings

from agents.llm import requests
from agents.llm.requests import Reply
from knowledge.providers import parse_model_name

SHOWN = 200


class Outcome(StrEnum):
    """What one call came to. Everything but `OK` is a failure with a sentence for the operator."""

    OK = "ok"
    # Nothing was heard of it, yet or any more.
    SENT = "sent"
    LOST = "lost"
    # The model answered, but not with something that can be used.
    TRUNCATED = "truncated"
    REFUSED = "refused"
    FILTERED = "filtered"
    EMPTY = "empty"
    MALFORMED = "malformed"
    WRONG_SCHEMA = "wrong_schema"
    # It took too long, or the answer broke off.
    TIMEOUT = "timeout"
    TOO_SLOW = "too_slow"
    CUT_OFF = "cut_off"
    # The provider could not be asked, whatever the question.
    UNREACHABLE = "unreachable"
    SERVER_ERROR = "server_error"
    RATE_LIMITED = "rate_limited"
    KEY_REFUSED = "key_refused"
    MODEL_MISSING = "model_missing"
    REJECTED = "rejected"
    BREAKER_OPEN = "breaker_open"
    BUDGET_SPENT = "budget_spent"
    OUT_OF_TIME = "out_of_time"


# Nobody looked at the question: that says nothing about it.
OUTAGES = frozenset(
    {
        Outcome.UNREACHABLE,
        Outcome.SERVER_ERROR,
        Outcome.RATE_LIMITED,
        Outcome.KEY_REFUSED,
        Outcome.MODEL_MISSING,
        Outcome.BREAKER_OPEN,
        Outcome.BUDGET_SPENT,
    }
)
# A reply came, so it was paid for: asking again would pay again.
REPLIED = frozenset(
    {
        Outcome.OK,
        Outcome.TRUNCATED,
        Outcome.REFUSED,
        Outcome.FILTERED,
        Outcome.EMPTY,
        Outcome.MALFORMED,
        Outcome.WRONG_SCHEMA,
    }
)
# Nobody knows what became of it: the provider may bill for it.
UNHEARD = frozenset({Outcome.SENT, Outcome.LOST})
# No request was sent.
UNASKED = frozenset({Outcome.BREAKER_OPEN, Outcome.BUDGET_SPENT, Outcome.OUT_OF_TIME})


class ModelFailure(Exception):
    """A model could not be asked, or what it answered cannot be used."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        retry_after: float | None = None,
        reply: str = "",
        problem: str = "",
        mendable: bool = True,
    ) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.retry_after = retry_after  # seconds the provider asked to wait
        self.reply = reply  # the reply that cannot be used
        self.problem = problem or message  # in words for the model that is to mend it
        self.mendable = mendable  # the same model may do better when it is asked again

    @property
    def outage(self) -> bool:
        """Whether the provider could not be asked at all, whatever the question was."""
        return self.outcome in OUTAGES


def most_telling(failures: Sequence[ModelFailure]) -> ModelFailure:
    """Return the one of several models' failures that says most of why there is no reply.

    One that the question may have provoked comes before an outage: it must not be hidden by a
    second model that merely could not be asked.
    """
    attempted = [each for each in failures if each.outcome not in UNASKED] or failures
    return next((each for each in attempted if not each.outage), attempted[-1])


def with_address(model: str) -> str:
    """Return how sentences call `model@provider`: with the address it is asked at."""
    server = settings.PROVIDERS.get(parse_model_name(model)[1])
    return f"{model} at {server.base_url}" if server else model


def refuse_unusable(reply: Reply, *, whole: bool = True, may_call: bool = False) -> None:
    """Raise ModelFailure for a reply that is none.

    One that was cut at its limit is none when it must be `whole`, or was cut before its first word.
    One that wants tools called says enough by that if it `may_call` them. A model that is told that
    it repeated itself may do better; one that is only asked again, as for what need not be whole,
    will not.
    """
    model = with_address(reply.model)
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
        case requests.LENGTH if whole or not reply.text.strip():
            raise ModelFailure(
                Outcome.TRUNCATED,
                f"{model}: the reply was cut at its limit of tokens: raise <ROLE>_MAX_TOKENS.",
                reply=reply.text.strip(),
            )
        case requests.EXCESS:
            raise ModelFailure(
                Outcome.TRUNCATED,
                f"{model} wrote on far beyond its limit of tokens and was not read further: see "
                "why the server does not keep to max_tokens.",
                mendable=False,
            )
        case requests.LOOP:
            raise malformed(reply, "the reply says the same over and over", mendable=whole)
        case requests.ECHO:
            raise malformed(reply, "the reply repeats what the model was told", mendable=whole)
    if not reply.text.strip() and not (may_call and reply.tool_calls):
        raise ModelFailure(
            Outcome.EMPTY,
            f"{model}: the reply is empty; a model that thinks first needs more <ROLE>_MAX_TOKENS.",
            problem="the reply is empty",
        )


def malformed(reply: Reply, problem: str, *, mendable: bool = True) -> ModelFailure:
    """Return the failure of a reply with this problem, which the model can be told."""
    return ModelFailure(
        Outcome.MALFORMED,
        f"{with_address(reply.model)}: {problem}: take another model.",
        reply=reply.text.strip(),
        problem=problem,
        mendable=mendable,
    )
