"""Pricing: what a call costs. An unknown price is unknown, not nothing."""

from decimal import Decimal

from genai_prices import Usage as Counted
from genai_prices import calc_price

from agents.llm.requests import Usage
from agents.models import Price
from knowledge.providers import OWN

MILLION = Decimal(1_000_000)
THOUSAND = 1_000


def cost(model: str, usage: Usage) -> Decimal | None:
    """Return US dollars for a call of `model@provider`, or None when price or count is unknown.

    A price set in admin comes first; then the published one. A model that runs on a server of
    one's own costs nothing by the call.
    """
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    if own := Price.objects.filter(model=model).first():
        spent = usage.input_tokens * own.input_per_million
        return (spent + usage.output_tokens * own.output_per_million) / MILLION
    name, _, provider = model.rpartition("@")
    if provider in OWN:
        return Decimal(0)
    counted = Counted(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or 0,
    )
    try:
        return calc_price(counted, name, provider_id=provider).total_price
    # An unknown model or provider, or counts that cannot be.
    except (LookupError, ValueError):
        return None


def rates(model: str) -> tuple[Decimal, Decimal] | None:
    """Return US dollars per million tokens of input and of output; None when not known.

    Of prices that rise with the length of a request, the lowest.
    """
    read, written = cost(model, Usage(THOUSAND, 0)), cost(model, Usage(0, THOUSAND))
    return None if read is None or written is None else (read * THOUSAND, written * THOUSAND)
