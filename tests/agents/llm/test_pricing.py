"""Pricing: what a call costs, and when that is not known."""

from decimal import Decimal

import pytest

from agents.llm.cost import cost
from agents.llm.requests import Usage
from agents.models import Price

pytestmark = pytest.mark.django_db


def test_the_published_price_counts_what_was_cached_for_less() -> None:
    whole = cost("gpt-4o-mini@openai", Usage(1_000_000, 0, 0))
    cached = cost("gpt-4o-mini@openai", Usage(1_000_000, 0, 1_000_000))
    assert whole is not None
    assert cached is not None
    assert 0 < cached < whole


def test_a_price_from_admin_comes_first() -> None:
    Price.objects.create(
        model="gpt-4o-mini@openai", input_per_million=Decimal(2), output_per_million=Decimal(10)
    )
    assert cost("gpt-4o-mini@openai", Usage(500_000, 100_000)) == Decimal(2)


def test_an_unknown_price_is_unknown_until_it_is_set() -> None:
    assert cost("llama@acme", Usage(10, 10)) is None
    assert cost("nothing-known@openai", Usage(10, 10)) is None
    Price.objects.create(model="llama@acme", input_per_million=1, output_per_million=1)
    assert cost("llama@acme", Usage(500_000, 500_000)) == 1


def test_without_a_count_the_cost_is_unknown() -> None:
    assert cost("gpt-4o-mini@openai", Usage()) is None
    assert cost("gpt-4o-mini@openai", Usage(10, None)) is None
    assert cost("llama@ollama", Usage()) is None


def test_a_server_of_ones_own_costs_nothing_by_the_call() -> None:
    assert cost("llama@ollama", Usage(10, 10)) == 0


def test_counts_that_cannot_be_have_no_price() -> None:
    assert cost("gpt-4o-mini@openai", Usage(10, 10, 500)) is None
