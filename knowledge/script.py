"""Script: the prose of a text, its script, and letters that tell languages apart."""

import re

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
