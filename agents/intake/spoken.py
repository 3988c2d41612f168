"""Spoken: which language a text is written in, as evidence from script, small words and letters."""

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock

from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
from langdetect.lang_detect_exception import LangDetectException

from agents.languages import ENGLISH, LOCALES
from agents.terms import FUNCTION_WORDS, vocabulary, words

# langdetect draws n-grams at random; with a seed the same text gives the same answer.
DetectorFactory.seed = 0
LOADING = Lock()

# What is no prose: code, addresses, paths, identifiers, abbreviations and versions.
# ASCII only: other scripts write without spaces, and a digit must not take the sentence along.
CODE = re.compile(
    r"```.*?(?:```|$)|`[^`]*`|\w+://\S+|\S+@\S+|[<{][^>}]*[>}]"
    r"|[!-~]*[/\\_][!-~]*|[!-~]*[a-zA-Z]\.[a-zA-Z][!-~]*|[!-~]*\d[!-~]*",
    re.DOTALL,
)
INNER_CAPITAL = re.compile(r"\b\w*[a-z][A-Z]\w*\b|\b[A-Z]{2,}\b")

SCRIPTS = {
    "han": re.compile(r"[\u3400-\u9fff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "hangul": re.compile(r"[\uac00-\ud7af]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "greek": re.compile(r"[\u0370-\u03ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
    "latin": re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]"),
}
# The languages each script is read as, the likelier first.
WRITTEN_IN = {
    "han": ("zh",),
    "kana": ("ja",),
    "hangul": ("ko",),
    "cyrillic": ("ru", "uk", "bg", "mk"),
    "greek": ("el",),
    "arabic": ("ar", "fa", "ur"),
    "hebrew": ("he",),
    "thai": ("th",),
    "devanagari": ("hi", "mr", "ne"),
}
NOT_LATIN = frozenset(language for languages in WRITTEN_IN.values() for language in languages)
# Letters that only this language of its script, or few others, uses.
TELLING = {
    "uk": re.compile(r"[іїєґ]"),
    "fa": re.compile(r"[پچژگ]"),
    "ur": re.compile(r"[ٹڈڑےں]"),
    "mr": re.compile(r"ळ|आहे|काय"),
    "ru": re.compile(r"[ыэё]"),
    "es": re.compile(r"[¿¡ñ]"),
    "de": re.compile(r"[ßäöü]"),
    "fr": re.compile(r"[œùêàçè]|\b[cdjlmnqst]'"),
    "pt": re.compile(r"[ãõ]"),
    "tr": re.compile(r"[ğış]"),
    "ro": re.compile(r"[șță]"),
    "vi": re.compile(r"[ơưđạảấầẩậắằặẹẻếềểệịọỏốồổộớờởợụủứừửựỳỵỷ]"),
    "pl": re.compile(r"[ąęłśźż]"),
    "cs": re.compile(r"[řěů]"),
    "sv": re.compile(r"å"),
}
EVERYDAY = vocabulary(Path(__file__).parent / "everyday_words.txt")
# From here on letter statistics count in full; below, they are a gamble (measured on questions
# cut to their first two to four words).
ENOUGH_LETTERS = 30
ENOUGH_WORDS = 4


@cache
def _factory() -> DetectorFactory:
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory


def prose(text: str) -> str:
    """`text` without code, addresses, identifiers and abbreviations."""
    plain = CODE.sub(" ", text)
    # Somebody who writes everything in capitals is not writing abbreviations.
    return plain if plain.isupper() else INNER_CAPITAL.sub(" ", plain)


def script_of(text: str) -> str | None:
    """The script most of the letters belong to; another script counts against Latin names.

    Any kana makes a text Japanese; a third of other letters outweigh Latin product names.
    """
    counts = {name: len(letters.findall(text)) for name, letters in SCRIPTS.items()}
    total = sum(counts.values())
    if not total:
        return None
    if counts["kana"]:
        return "kana"
    # One Chinese character says as much as three letters.
    counts["han"] *= 3
    others = {name: count for name, count in counts.items() if name != "latin"}
    strongest = max(others, key=lambda name: others[name])
    return strongest if others[strongest] * 3 >= total else "latin"


def _by_letters(text: str) -> dict[str, float]:
    """langdetect's probabilities, without regions."""
    with LOADING:
        detector = _factory().create()
    detector.append(text)
    found: Counter[str] = Counter()
    try:
        for guess in detector.get_probabilities():
            found[guess.lang.split("-")[0]] += guess.prob
    except LangDetectException:  # No letters it knows.
        return {}
    return dict(found)


def _hints(text: str) -> Counter[str]:
    """How strongly the words and letters of `text` speak for each language with Latin letters.

    A word that several languages share counts for each of them by its share; an everyday
    word counts half, for many are used in other languages too.
    """
    hints: Counter[str] = Counter()
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
        return 1.5
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
    plain = prose(text)
    script = script_of(plain)
    if script is None:
        return {}
    by_letters = _by_letters(plain)
    if script != "latin":
        return _within(WRITTEN_IN[script], plain, by_letters, leaning or {})
    hints = _hints(plain)
    candidates = set(by_letters) | set(hints) | set(LOCALES) | set(leaning or {})
    trust = min(1.0, sum(map(str.isalpha, plain)) / ENOUGH_LETTERS)
    odds = {
        language: (by_letters.get(language, 0) + 0.02) ** trust
        * math.exp(3 * min(hints[language], 4))
        * _familiarity(language, plain)
        * (leaning or {}).get(language, 1.0)
        for language in candidates - NOT_LATIN
    }
    return _shares(odds)


def _within(
    languages: tuple[str, ...],
    text: str,
    by_letters: Mapping[str, float],
    leaning: Mapping[str, float],
) -> dict[str, float]:
    """Tell the languages of one script apart, the first of them being the likeliest."""
    odds = {language: 0.02 + 0.5 * by_letters.get(language, 0) for language in languages}
    odds[languages[0]] += 2
    for language in languages:
        if language in TELLING and TELLING[language].search(text.casefold()):
            odds[language] += 8
        odds[language] *= leaning.get(language, 1.0)
    return _shares(odds)


def _shares(odds: Mapping[str, float]) -> dict[str, float]:
    total = sum(odds.values())
    return {language: value / total for language, value in odds.items()}
