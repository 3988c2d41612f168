"""Languages: those with fixed sentences of our own, and the names people call them by."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from django.utils.translation import get_language_info

from agents.terms import HAN, vocabulary

ENGLISH = "en"

# Docent's language code to the locale Django keeps its sentences under.
LOCALES = {
    "en": "en",
    "de": "de",
    "es": "es",
    "fr": "fr",
    "ru": "ru",
    "zh": "zh-hans",
}

NAMES = vocabulary(Path(__file__).parent / "language_names.txt")


def base(language: str) -> str:
    """The language without its region: "zh" for "zh-cn"."""
    return language.split("-", maxsplit=1)[0]


def locale_of(language: str) -> str:
    """The locale whose fixed sentences suit a speaker of `language`; English when none does."""
    return LOCALES.get(base(language), LOCALES[ENGLISH])


def english_name(language: str) -> str:
    """What a language is called in English: "German"; its code when it has no name here."""
    for code in (language, LOCALES.get(base(language), base(language))):
        try:
            return str(get_language_info(code)["name"])
        except KeyError:
            continue
    return language


def listed(languages: Iterable[str]) -> str:
    """Name the languages in English, the commonest first: "German, English"; empty for none."""
    commonest = Counter(map(base, filter(None, languages))).most_common()
    return ", ".join(english_name(language) for language, _ in commonest)


def named_in(text: str) -> str | None:
    """The code of the first language `text` names, by its code alone or in words."""
    wanted = text.strip().casefold()
    if base(wanted) in NAMES:
        return base(wanted)
    for language, names in NAMES.items():
        for name in names:
            # Chinese writes no spaces: a name may stand anywhere.
            edge = "" if HAN.match(name) else r"\b"
            if re.search(edge + re.escape(name), wanted):
                return language
    return None
