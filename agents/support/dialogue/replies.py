"""Replies: how an answer to a question of the dialogue is told from everything else, by its form.

That is a yes or a no, what a button says, the number of an invoice or a case, a sum of money, the
name of a reason. No model is asked, so that routing can ask it, too.
"""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

from agents.attributes import RefundForm
from agents.support.dialogue.amounts import amounts
from agents.words import LOCALES, Phrase, words

REASONS = ("overcharge", "service_outage", "within_cooling_off", "other")
with Path(__file__).with_name("consent.toml").open("rb") as file:
    CONSENT: dict[str, list[str]] = tomllib.load(file)
PART = re.compile(r"[;,:!?\n]+|\.(?=\s|\Z)|\s[-\u2013\u2014]\s")
# Nothing but an answer: so many words beside what is understood of it.
FEW_WORDS = 3
RUN = re.compile(r"[^\W\d_]+|\d+")
# A number without what stands before its first digit is still one with so many characters.
SHORTEST_TAIL = 4
Consent = Literal["yes", "no", ""]


def answers(text: str, form: RefundForm, *, is_asked_else: bool = False) -> bool:
    """Tell whether a message is nothing but an answer to a form that is open.

    A yes or a no answers what else was asked since, if anything was; what a model asked, at once
    or never. A no with a few words more is about what was just shown ("no, the other invoice").
    """
    if consent(text):
        return not is_asked_else and (form.is_asked or form.turns_beside == 0)
    objected = objection(text)
    if objected and form.is_shown and not is_asked_else and _is_short(objected):
        return True
    invoices = named(text, form.invoices)
    rest = without(text, invoices)
    return bool(reasons_named(text)) or (_is_short(rest) and bool(invoices or amounts(rest)))


def _is_short(text: str) -> bool:
    return sum(word.isalpha() for word in words(text)) <= FEW_WORDS


def objection(text: str) -> str:
    """Return what a text goes on with after a no; empty: it says no such thing."""
    first, *more = PART.split(text.strip(), maxsplit=1)
    return more[0].strip() if more and consent(first) == "no" else ""


def consent(text: str) -> Consent:
    """Return whether a text says yes or no, and nothing else."""
    plain = text.strip().casefold()
    said = tuple(word for word in words(plain) if (word,) not in _entries("beside"))
    if plain in in_all_languages(Phrase.SUGGEST_OPEN_CASE) or said in _entries("yes"):
        return "yes"
    if plain in in_all_languages(Phrase.SUGGEST_NO_CASE) or said in _entries("no"):
        return "no"
    return ""


@cache
def _entries(kind: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(words(entry)) for entry in CONSENT[kind])


@cache
def in_all_languages(phrase: Phrase) -> frozenset[str]:
    """Return what a button without values says, in lower case."""
    return frozenset(phrase.in_language(language).casefold() for language in LOCALES)


def reasons_named(text: str) -> set[str]:
    """Return the codes of the reasons that parts of a text are names of."""
    parts = {part.strip().casefold() for part in PART.split(text)}
    return {code for code in REASONS if parts & _reason_names(code)}


@cache
def _reason_names(code: str) -> frozenset[str]:
    spelt = frozenset({code, code.replace("_", " "), code.replace("_", "-")})
    return spelt | in_all_languages(Phrase[f"REASON_{code.upper()}"])


def named(text: str, numbers: Iterable[str]) -> list[str]:
    """Return the numbers that a text names, in whatever case and with whatever separators.

    What comes before the first digit may be left out where that tells them apart.
    """
    numbers = list(numbers)
    if found := [number for number in numbers if pattern(number).search(text)]:
        return found
    tails = {number: _tail(number) for number in numbers}
    return [
        number
        for number, tail in tails.items()
        if tail and [*tails.values()].count(tail) == 1 and pattern(tail).search(text)
    ]


def without(text: str, numbers: Iterable[str]) -> str:
    """Return a text without these numbers, written out or by their tails."""
    for number in numbers:
        for form in filter(None, (number, _tail(number))):
            text = pattern(form).sub(" ", text)
    return text


def strange(text: str, known: Iterable[str], *, shortest: int = 1) -> str:
    """Return what is written like one of the known numbers, and is none of them; or empty.

    It begins with the same letters, and goes on, after a separator or not, with at least so many
    characters, a digit among them.
    """
    known = list(known)
    for prefix in {runs[0] for runs in map(RUN.findall, known) if runs}:
        tail = rf"(?=[\w/.-]*\d)\w[\w/.-]{{{shortest - 1},}}"
        shape = rf"(?<![^\W_]){re.escape(prefix)}(?:[\W_]{{1,3}}{tail}|(?=\d){tail})"
        for match in re.finditer(shape, text, re.IGNORECASE) if prefix.isalpha() else ():
            if not named(match[0], known):
                return match[0].rstrip(".-/")
    return ""


@cache
def pattern(number: str) -> re.Pattern[str]:
    """Find a number with whatever stands between its letters and digits, or nothing."""
    inner = r"[\W_]{0,3}".join(map(re.escape, RUN.findall(number))) or re.escape(number)
    return re.compile(rf"(?<![^\W_]){inner}(?![^\W_])", re.IGNORECASE)


def _tail(number: str) -> str:
    tail = re.sub(r"\A\D+", "", number)
    return tail if tail != number and len(tail) >= SHORTEST_TAIL else ""
