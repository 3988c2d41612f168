"""Amounts: which sums of money a message names, however they are written."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.support.dialogue.amounts import amounts
from agents.words import LOCALES


@pytest.mark.parametrize(
    ("text", "language", "amount"),
    [
        ("Reason: overcharge. Amount: PLN 100", "en", "100"),
        ("Powód: overcharge, kwota 45 PLN", "pl", "45"),
        ("45,00 zł", "pl", "45.00"),
        ("45,00 zł", "en", "45.00"),
        ("1 000,50 złotych", "pl", "1000.50"),
        ("1.000,50 Zloty", "de", "1000.50"),
        ("1,000.50 PLN", "en", "1000.50"),
        ("1'000.50 PLN", "en", "1000.50"),
        ("45 злотых", "ru", "45"),
        ("45波兰兹罗提", "zh", "45"),
        ("PLN45.5", "en", "45.5"),
        ("100zł", "pl", "100"),
        ("no, 50", "en", "50"),
        ("1e9", "en", "1e9"),
        ("-1", "en", "-1"),
        ("\u22121 PLN", "en", "-1"),
        ("0", "en", "0"),
        ("1000.01", "pl", "1000.01"),
        ("Infinity", "en", "Infinity"),
    ],
)
def test_a_sum_is_read_as_it_is_meant(text: str, language: str, amount: str) -> None:
    (money,) = amounts(text, language)
    assert money.amount == Decimal(amount)
    assert money.is_in("PLN")


def test_what_is_no_number_is_a_sum_all_the_same() -> None:
    (money,) = amounts("NaN PLN")
    assert money.amount.is_nan()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("100 EUR", "EUR"),
        ("$45", "USD"),
        ("45 €", "EUR"),
        ("20 Kč", "CZK"),
        ("45 US dollars", "USD"),
        ("45 dollars", "CAD"),
        ("100 eur", "EUR"),
    ],
)
def test_a_currency_is_told_by_code_sign_or_name(text: str, code: str) -> None:
    (money,) = amounts(text)
    assert money.is_in(code)
    assert not money.is_in("PLN")


@pytest.mark.parametrize(
    "text",
    [
        "I was charged twice 2 days ago, for INV-20251001 of 2025-10-01, with 100GB",
        "on 01.10.2025 at 10:30",
        "45-50 PLN",
        "case R10001",
        "the invoice of October 2025",
        "my grandma Nan has never been so angry about anything",
        "",
    ],
)
def test_what_is_no_sum_is_none(text: str) -> None:
    assert amounts(text) == []


def test_sums_with_a_currency_count_before_numbers_without_one() -> None:
    assert [money.amount for money in amounts("2 times, 45 PLN")] == [45]


def test_words_that_are_codes_elsewhere_are_words() -> None:
    assert [money.named for money in amounts("I won 50; 45 all together")] == ["", ""]


@given(
    cents=st.integers(1, 99_999_999),
    language=st.sampled_from(sorted(LOCALES)),
    sign=st.sampled_from([".", ","]),
)
def test_two_decimals_are_read_alike_in_every_language_with_either_sign(
    cents: int, language: str, sign: str
) -> None:
    whole, rest = divmod(cents, 100)
    (money,) = amounts(f"{whole}{sign}{rest:02} PLN", language)
    assert money.amount == Decimal(cents) / 100


@given(st.text(max_size=60))
def test_whatever_is_written_is_read(text: str) -> None:
    for money in amounts(text):
        assert money.is_in("PLN") in {True, False}
