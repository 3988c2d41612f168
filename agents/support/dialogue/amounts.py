"""Amounts: the sums of money that a message names, in whatever language and spelling.

Numbers and names of currencies are read by Babel, that is as CLDR has them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from babel import Locale
from babel.core import get_global
from babel.numbers import (
    NumberFormatError,
    get_currency_name,
    get_currency_symbol,
    get_territory_currencies,
    parse_decimal,
)

from agents.words import ENGLISH, EVERY_FUNCTION_WORD, LOCALES, base_language

GAP = " \u00a0\u202f\u2009"
APOSTROPHES = "'\u2019"
MINUS = "\u2212"
# Not within a date, a range, a time or a name: 2025-10-01, 45-50, 01.10.2025, 10:30, INV-7.
NUMBER = re.compile(
    rf"""(?<![\d.,/:_-])(?:(?<![^\s:(=])[-+{MINUS}])?
    (?:nan|inf(?:inity)?|
      (?:\d{{1,3}}(?:[{GAP}'\u2019.,]\d{{3}})+|\d+)(?:[.,]\d+)?(?:e[+-]?\d+)?
    )(?![\d/:_]|[.,-]\d)""",
    re.IGNORECASE | re.VERBOSE,
)
BEFORE = re.compile(rf"([^\W\d_]+|[^\w\s.,:;!?()'\"-])[{GAP}]?\Z")
# Two words: "US dollars".
AFTER = re.compile(rf"\A[{GAP}]?([^\W\d_]+|[^\w\s.,:;!?()'\"-])(?:[{GAP}]([^\W\d_]+))?")
# A number without a currency is an amount where next to nothing is said beside it in its part.
PART = re.compile(r"[;\n!?()]|[.,](?=\s|\Z)|\s[-\u2013\u2014]\s")
WORD = re.compile(r"[^\W\d_]+")
FEW_WORDS = 2
CODE = 3  # letters
COUNTS = (None, 1, 2, 5)  # which bring up all forms of a currency's name
YEARS = range(1900, 2101)


@dataclass(frozen=True)
class Money:
    """A sum as somebody named it; maybe below 0, beyond all limits, or no number at all."""

    amount: Decimal
    named: str = ""  # the currency, in the customer's words; empty: none was named
    currencies: frozenset[str] = frozenset()  # codes that this can mean

    def is_in(self, currency: str) -> bool:
        """Whether it can be in this currency."""
        return not self.named or currency in self.currencies


def amounts(text: str, language: str = ENGLISH) -> list[Money]:
    """Return the sums that a text names, each once; those with a currency if any has one."""
    found = list(_found(text, language))
    named = [money for money, _ in found if money.named]
    alone = [money for money, is_alone in found if is_alone]
    return list(dict.fromkeys(named or alone))


def _found(text: str, language: str) -> Iterator[tuple[Money, bool]]:
    """Yield every number that may be a sum, and whether it would be one without a currency."""
    for match in NUMBER.finditer(text):
        number = _number(match[0], language)
        if number is None:
            continue
        before, after = BEFORE.search(text[: match.start()]), AFTER.search(text[match.end() :])
        name, codes = _currency(before[1] if before else "", after.groups("") if after else ())
        touches = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
        if not name and any(each.isalpha() for each in touches):
            continue  # R10001, 100GB
        is_alone = _is_alone(text, match) and not _is_year(number, text)
        yield Money(number, name, codes), is_alone


def _number(text: str, language: str) -> Decimal | None:
    """Read a number as the language writes it, else as others do; None: as none does."""
    text = text.replace(MINUS, "-")
    for gap in GAP + APOSTROPHES:
        text = text.replace(gap, "")
    for locale in dict.fromkeys([LOCALES.get(base_language(language), ENGLISH), *LOCALES.values()]):
        try:
            return parse_decimal(text, locale=_locale(locale), strict=True)
        except NumberFormatError:
            continue
    return None


def _is_alone(text: str, match: re.Match[str]) -> bool:
    """Whether few words stand beside a number in its part of the text."""
    ends = [each.span() for each in PART.finditer(text)]
    begin = max((end for _, end in ends if end <= match.start()), default=0)
    stop = min((start for start, _ in ends if start >= match.end()), default=len(text))
    beside = text[begin : match.start()] + " " + text[match.end() : stop]
    return len(WORD.findall(beside)) <= FEW_WORDS


def _is_year(number: Decimal, text: str) -> bool:
    return number in YEARS and WORD.search(text) is not None


def _currency(before: str, after: Sequence[str]) -> tuple[str, frozenset[str]]:
    """Return the currency named beside a number, and the codes it can mean; empty: none.

    "won" and "all" are words before they are currencies: names count after a number only, and
    codes before one in capitals.
    """
    names = _names()
    for word in after:
        codes = names.get(word.casefold())
        if codes and word.casefold() not in EVERY_FUNCTION_WORD:
            return word, codes
    is_code = len(before) == CODE and before.isupper()
    codes = names.get(before.casefold())
    if codes and (is_code or not before.isalpha() or len(before) < CODE):
        return before, codes
    return "", frozenset()


@cache
def _names() -> dict[str, frozenset[str]]:
    """The codes that a symbol, a code, or a word of a name can mean; in lower case."""
    valid = {
        code
        for territory in get_global("territory_currencies")
        for code in get_territory_currencies(territory)
    }
    names: dict[str, set[str]] = {code.casefold(): {code} for code in valid}
    for locale in map(_locale, LOCALES.values()):
        for code in valid:
            for name in _names_in(locale, code):
                names.setdefault(name, set()).add(code)
    return {name: frozenset(codes) for name, codes in names.items()}


def _names_in(locale: Locale, code: str) -> set[str]:
    whole = [get_currency_name(code, count, locale) for count in COUNTS]
    words = [word for name in whole for word in WORD.findall(name) if len(word) >= CODE]
    symbol = get_currency_symbol(code, locale)
    return {each.casefold() for each in (*words, symbol) if each != code}


def _locale(name: str) -> Locale:
    return Locale.parse(name, sep="-") if "-" in name else Locale.parse(name)
