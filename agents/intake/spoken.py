"""Spoken: which language a text is written in, as evidence from script, small words and letters."""

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from agents.languages import ENGLISH, LOCALES
from agents.terms import FUNCTION_WORDS, vocabulary, words
from knowledge.language import by_letters
from knowledge.script import NOT_LATIN, TELLING, WRITTEN_IN, prose, script_of

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
    for language, letters in TELLING.items():
        hints[language] += 0.5 * bool(letters.search(text.casefold()))
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
    letters = by_letters(plain)
    if script != "latin":
        return _within(WRITTEN_IN[script], plain, letters, leaning or {})
    hints = _hints(plain)
    candidates = set(letters) | set(hints) | set(LOCALES) | set(leaning or {})
    trust = min(1.0, sum(map(str.isalpha, plain)) / ENOUGH_LETTERS)
    odds = {
        language: (letters.get(language, 0) + UNSEEN) ** trust
        * math.exp(HINT * min(hints[language], MOST_HINTS))
        * _familiarity(language, plain)
        * (leaning or {}).get(language, 1.0)
        for language in candidates - NOT_LATIN
    }
    return _shares(odds)


def _within(
    languages: tuple[str, ...],
    text: str,
    letters: Mapping[str, float],
    leaning: Mapping[str, float],
) -> dict[str, float]:
    """Tell the languages of one script apart, the first of them being the likeliest."""
    odds = {language: 0.02 + 0.5 * letters.get(language, 0) for language in languages}
    odds[languages[0]] += 2
    for language in languages:
        if language in TELLING and TELLING[language].search(text.casefold()):
            odds[language] += 8
        odds[language] *= leaning.get(language, 1.0)
    return _shares(odds)


def _shares(odds: Mapping[str, float]) -> dict[str, float]:
    total = sum(odds.values())
    return {language: value / total for language, value in odds.items()}
