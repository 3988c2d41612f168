"""Language: which language a text is written in, as evidence from its script and its letters."""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from threading import Lock

from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
from langdetect.lang_detect_exception import LangDetectException

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
LANGUAGES_OF_SCRIPT = {
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
NOT_LATIN = frozenset(
    language for languages in LANGUAGES_OF_SCRIPT.values() for language in languages
)
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


HAN_PER_KANA = 8  # Japanese has about as many of these as of those


def prose(text: str) -> str:
    """`text` without code, addresses, identifiers and abbreviations."""
    plain = CODE.sub(" ", text)
    # Somebody who writes everything in capitals is not writing abbreviations.
    return plain if plain.isupper() else INNER_CAPITAL.sub(" ", plain)


def script_of(text: str) -> str | None:
    """The script most of the letters belong to; another script counts against Latin names.

    Kana make a text Japanese, unless they are a name or two in a Chinese one; a third of other
    letters outweigh Latin product names.
    """
    counts = {name: len(letters.findall(text)) for name, letters in SCRIPTS.items()}
    total = sum(counts.values())
    if not total:
        return None
    if counts["kana"]:
        return "kana" if counts["kana"] * HAN_PER_KANA >= counts["han"] else "han"
    # One Chinese character says as much as three letters.
    counts["han"] *= 3
    others = {name: count for name, count in counts.items() if name != "latin"}
    strongest = max(others, key=lambda name: others[name])
    return strongest if others[strongest] * 3 >= total else "latin"


# langdetect draws n-grams at random; with a seed the same text gives the same answer.
DetectorFactory.seed = 0
LOADING = Lock()

DEFAULT = "en"
# Characters: a longer text is no better evidence, and takes longer.
SAMPLE = 1000
# What langdetect must say to be believed, and of how many letters. Of English headings and of
# questions in six languages it took 8 % for another language at 20 to 29 letters, 1 % at 30 to 39.
SURE, ENOUGH_LETTERS = 0.9, 30
# With a letter in it that few other languages use, this is enough.
ENOUGH_WITH_TELLING = 12
# Odds among the languages of one script: of each by its letters, of the commonest, of one with a
# letter that tells, and of one that is sure. Each is more than all before it together.
LETTER_ODDS, COMMONEST_ODDS, TELLING_ODDS, CERTAIN_ODDS = 0.5, 2.0, 8.0, 16.0
UNSEEN = 0.02  # of one that the letters don't suggest at all


@cache
def profiles() -> DetectorFactory:
    """Return how often each language uses which letters, pairs and triples of them."""
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    return factory


def letter_probabilities(text: str) -> dict[str, float]:
    """Return langdetect's probabilities, without regions; nothing when it knows no letter."""
    with LOADING:
        detector = profiles().create()
    detector.append(text)
    probabilities: dict[str, float] = defaultdict(float)
    try:
        for guess in detector.get_probabilities():
            probabilities[guess.lang.partition("-")[0]] += guess.prob
    except LangDetectException:
        return {}
    return dict(probabilities)


def language(content: str) -> str:
    """Return the language of a text; English when there is too little of it to tell."""
    sample = " ".join(prose(content[: 4 * SAMPLE]).split())[:SAMPLE]
    script = script_of(sample)
    if script in LANGUAGES_OF_SCRIPT:
        odds = odds_in_script(script, sample)
        return max(odds, key=lambda each: odds[each])
    letters = sum(map(str.isalpha, sample))
    best = near_certain(letter_probabilities(sample))
    # Scripts that are not listed have one language each.
    is_enough = script is None or letters >= ENOUGH_LETTERS
    if is_enough or (letters >= ENOUGH_WITH_TELLING and has_telling_letter(best, sample)):
        return best or DEFAULT
    return DEFAULT


def odds_in_script(script: str, text: str) -> dict[str, float]:
    """Return the odds of each language that is written in this script; its commonest when unsure.

    They are above 0, and what else is known of the text may multiply them.
    """
    letters = letter_probabilities(text)
    odds = {
        code: UNSEEN + LETTER_ODDS * letters.get(code, 0) for code in LANGUAGES_OF_SCRIPT[script]
    }
    odds[LANGUAGES_OF_SCRIPT[script][0]] += COMMONEST_ODDS
    for code in odds:
        odds[code] += TELLING_ODDS * has_telling_letter(code, text)
    best = near_certain(letters)
    if best in odds and sum(map(str.isalpha, text)) >= ENOUGH_LETTERS:
        odds[best] += CERTAIN_ODDS
    return odds


def near_certain(chances: Mapping[str, float]) -> str:
    """Return the language that is all but certain; nothing when none is."""
    return next((each for each, chance in chances.items() if chance >= SURE), "")


def has_telling_letter(language: str, text: str) -> bool:
    """Tell whether there is a letter in it that few other languages use."""
    return language in TELLING and TELLING[language].search(text.casefold()) is not None
