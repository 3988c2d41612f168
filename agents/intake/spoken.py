"""Spoken: which language a text is written in, as evidence from script, small words and letters."""

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from agents.languages import ENGLISH, LOCALES
from agents.terms import FUNCTION_WORDS, vocabulary, words
from knowledge.language import by_letters, tells, within
from knowledge.script import NOT_LATIN, TELLING, prose, script_of

EVERYDAY = vocabulary(Path(__file__).parent / "everyday_words.txt")
# From here on letter statistics count in full; below, they are a gamble (measured on questions
# cut to their first two to four words).
ENOUGH_LETTERS = 35
# Chance of a language the letters do not suggest at all: product names mislead them.
UNSEEN = 0.05
# What one telling word adds to the logarithm of the odds, and how many words count.
HINT, MOST_HINTS = 3.5, 4
ENOUGH_WORDS = 4
# Characters that settle the language of any message.
ENOUGH_TEXT = 2000


def _hints(text: str) -> dict[str, float]:
    """How strongly the words and letters of `text` speak for each language with Latin letters.

    A word that several languages share counts for each of them by its share; an everyday
    word counts half, for many are used in other languages too.
    """
    hints: dict[str, float] = defaultdict(float)
    for word in set(words(text)):
        for vocabularies, weight in ((FUNCTION_WORDS, 1.0), (EVERYDAY, 0.5)):
            sharing = [language for language, own in vocabularies.items() if word in own]
            for language in sharing:
                hints[language] += weight / len(sharing)
    for language in TELLING:
        hints[language] += 0.5 * tells(language, text)
    return hints


def _familiarity(language: str, text: str) -> float:
    """How likely a language is before a word of it is read; less so in very short texts."""
    if language == ENGLISH:
        return 2.0
    if language in LOCALES:
        return 1.0
    short = len(text.split()) < ENOUGH_WORDS
    if language in FUNCTION_WORDS:
        return 0.2 if short else 0.5
    return 0.02 if short else 0.1


def likelihood(text: str, leaning: Mapping[str, float] | None = None) -> dict[str, float]:
    """Probabilities of the languages `text` may be in, summing to 1; empty without letters.

    `leaning` multiplies the odds of languages that the conversation makes likelier.
    """
    plain = prose(text[:ENOUGH_TEXT])
    script = script_of(plain)
    if script is None:
        return {}
    leaning = leaning or {}
    if script != "latin":
        odds = within(script, plain)
        return _shares({each: odds[each] * leaning.get(each, 1.0) for each in odds})
    letters = by_letters(plain)
    hints = _hints(plain)
    candidates = set(letters) | set(hints) | set(LOCALES) | set(leaning)
    trust = min(1.0, sum(map(str.isalpha, plain)) / ENOUGH_LETTERS)
    odds = {
        language: (letters.get(language, 0) + UNSEEN) ** trust
        * math.exp(HINT * min(hints[language], MOST_HINTS))
        * _familiarity(language, plain)
        * leaning.get(language, 1.0)
        for language in candidates - NOT_LATIN
    }
    return _shares(odds)


def _shares(odds: Mapping[str, float]) -> dict[str, float]:
    total = sum(odds.values())
    return {language: value / total for language, value in odds.items()}
