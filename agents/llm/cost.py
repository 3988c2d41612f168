"""Cost: what a call costs, and what may be spent on models in a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet, Sum
from django.utils.timezone import now
from genai_prices import Usage as Counted
from genai_prices import calc_price

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Request, Usage
from agents.models import Budget, ModelCall, Price
from agents.names import ANALYSTS
from knowledge.providers import OWN

MILLION = Decimal(1_000_000)
THOUSAND = 1_000
# Of UTF-8, in a token of English, roughly; as `turn_memory` counts them.
BYTES_A_TOKEN = 4
# What is usual is told from so much of what was done.
LATELY = timedelta(days=30)


def check_budget(owner: str, key: str = "", *, besides: int = 0) -> None:
    """Raise ModelFailure (BUDGET_SPENT) when today's money or tokens are spent; days are UTC's.

    DAILY_BUDGET_PER_KEY and DAILY_TOKENS_PER_KEY hold for each key; what a user asks without one
    counts together. A Budget set in admin holds for all that is asked in the user's name. What is
    on its way counts as the most it can cost, and with the tokens of its request. `besides` is the
    id of the call that is to be made, 0 for none. It must be stored before: so each of several at
    once sees the others, and they pass the budget by one of them at most.
    """
    try:
        _check_budget(owner, key, besides)
    finally:
        connection.close()


def _check_budget(owner: str, key: str, besides: int) -> None:
    todays_calls = ModelCall.objects.filter(
        created__gte=datetime.combine(now().date(), time(), UTC)
    ).exclude(pk=besides)
    if settings.DAILY_BUDGET and _sum(todays_calls) >= settings.DAILY_BUDGET:
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's budget of {settings.DAILY_BUDGET:g} USD for models is spent; raise "
            "DAILY_BUDGET, or wait until midnight UTC.",
        )
    if settings.DAILY_TOKENS and _tokens(todays_calls) >= settings.DAILY_TOKENS:
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's {settings.DAILY_TOKENS:,} tokens of models are spent; raise DAILY_TOKENS, or "
            "wait until midnight UTC.",
        )
    # Behind the slash stands for whom the key asked; all of them are spending its money.
    payer, slash, _ = owner.partition("/")
    if not payer:
        return
    payer_calls = todays_calls.filter(owner__startswith=payer + slash)
    budget = _budget_of(payer)
    by_key = payer_calls.filter(key=key)
    if settings.DAILY_TOKENS_PER_KEY and _tokens(by_key) >= settings.DAILY_TOKENS_PER_KEY:
        whose = f"key {key} of {payer}" if key else payer
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's {settings.DAILY_TOKENS_PER_KEY:,} tokens for {whose} are spent; raise "
            "DAILY_TOKENS_PER_KEY, or wait until midnight UTC.",
        )
    limit = budget.usd_per_day if budget else Decimal(str(settings.DAILY_BUDGET_PER_KEY))
    calls = payer_calls if budget else by_key
    if limit and _sum(calls) >= limit:
        whose = payer if budget or not key else f"key {key} of {payer}"
        raise ModelFailure(
            Outcome.BUDGET_SPENT,
            f"Today's budget of {limit:f} USD for {whose} is spent; raise it under "
            "Budgets in admin or by DAILY_BUDGET_PER_KEY, or wait until midnight UTC.",
        )


def spent_today() -> Decimal:
    """Return US dollars of all calls of today (UTC), as the daily budget counts them."""
    return _sum(ModelCall.objects.filter(created__gte=datetime.combine(now().date(), time(), UTC)))


def _budget_of(payer: str) -> Budget | None:
    """Return the budget that admin gave a user."""
    user_id = payer.removeprefix("user:")
    return Budget.objects.filter(owner_id=int(user_id)).first() if user_id.isdigit() else None


def _tokens(calls: "QuerySet[ModelCall]") -> int:
    """Return the tokens that were asked for; an earlier reply that is used again has none."""
    asked = calls.filter(cached_from=None).aggregate(Sum("input_tokens"), Sum("output_tokens"))
    return sum(filter(None, asked.values()))


def _sum(calls: "QuerySet[ModelCall]") -> Decimal:
    return calls.aggregate(spent=Sum("cost"))["spent"] or Decimal(0)


def cost(model: str, usage: Usage) -> Decimal | None:
    """Return US dollars for a call of `model@provider`, or None when price or count is unknown.

    A price set in admin comes first; then the published one. A model that runs on a server of
    one's own costs nothing by the call.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if price := Price.objects.filter(model=model).first():
        spent = usage.input_tokens * price.input_per_million
        return (spent + usage.output_tokens * price.output_per_million) / MILLION
    name, _, provider = model.rpartition("@")
    if provider in OWN:
        return Decimal(0)
    tokens = Counted(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or 0,
    )
    try:
        return calc_price(tokens, name, provider_id=provider).total_price
    # An unknown model or provider, or counts that cannot be.
    except (LookupError, ValueError):
        return None


def estimate(request: Request) -> Usage:
    """Return what a request may come to: its text in tokens, and as long a reply as it allows."""
    text = "".join(str(message["content"]) for message in request.messages)
    return Usage(len(text.encode(errors="replace")) // BYTES_A_TOKEN, request.max_tokens)


def rates(model: str) -> tuple[Decimal, Decimal] | None:
    """Return US dollars per million tokens of input and of output; None when not known.

    Of prices that rise with the length of a request, the lowest.
    """
    input_price, output_price = cost(model, Usage(THOUSAND, 0)), cost(model, Usage(0, THOUSAND))
    return (
        None
        if input_price is None or output_price is None
        else (input_price * THOUSAND, output_price * THOUSAND)
    )


@dataclass(frozen=True)
class Habit:
    """What a role's step usually comes to; as one is guessed of which nothing is known."""

    calls: int = 4
    input_tokens: int = 12_000
    output_tokens: int = 1_600
    is_guess: bool = True


def habits(roles: Sequence[str]) -> dict[str, Habit]:
    """Return what steps of these roles came to lately, on average; leaves no connection open."""
    since = now() - LATELY
    made = ModelCall.objects.filter(
        role__in=roles, created__gte=since, cached_from=None, envelope__isnull=False
    )
    sums = made.values("role").annotate(
        steps=Count("subject", distinct=True),
        calls=Count("pk"),
        read=Sum("input_tokens"),
        written=Sum("output_tokens"),
    )
    try:
        known = {
            row["role"]: Habit(
                round(row["calls"] / row["steps"]),
                round((row["read"] or 0) / row["steps"]),
                round((row["written"] or 0) / row["steps"]),
                is_guess=False,
            )
            for row in sums.order_by()
        }
    finally:
        connection.close()
    return {role: known.get(role, Habit()) for role in roles}


def check_analysis(envelope_id: Any) -> None:
    """Raise ModelFailure (BUDGET_SPENT) when what one analysis may cost is spent.

    Calls on their way do not count, so each that works at the same time may pass it by one.
    """
    if not (settings.ANALYSIS_BUDGET or settings.ANALYSIS_TOKENS):
        return
    calls = ModelCall.objects.filter(envelope=envelope_id, role__in=ANALYSTS)
    calls = calls.exclude(outcome=Outcome.SENT)
    if settings.ANALYSIS_BUDGET and _sum(calls) >= settings.ANALYSIS_BUDGET:
        spent, name = f"{settings.ANALYSIS_BUDGET:g} USD", "ANALYSIS_BUDGET"
    elif settings.ANALYSIS_TOKENS and _tokens(calls) >= settings.ANALYSIS_TOKENS:
        spent, name = f"{settings.ANALYSIS_TOKENS:,} tokens", "ANALYSIS_TOKENS"
    else:
        return
    raise ModelFailure(
        Outcome.BUDGET_SPENT, f"The {spent} that one analysis may take are spent; raise {name}."
    )
