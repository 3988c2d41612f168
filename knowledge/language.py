"""Language: which one a text is written in, told by a small model from its words and letters."""

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from knowledge.trained_layers import buckets, layer

# What is no prose: code, addresses, paths, identifiers, abbreviations and versions.
# ASCII only: other scripts write without spaces, and a digit must not take the sentence along.
CODE = re.compile(
    r"```.*?(?:```|$)|`[^`]*`|\w+://\S+|\S+@\S+|[<{][^>}]*[>}]"
    r"|[!-~]*[/\\_][!-~]*|[!-~]*[a-zA-Z]\.[a-zA-Z][!-~]*|[!-~]*\d[!-~]*",
    re.DOTALL,
)
INNER_CAPITAL = re.compile(r"\b\w*[a-z][A-Z]\w*\b|\b[A-Z]{2,}\b")

# A run of letters with their marks, which Indian scripts and Thai write as characters of their
# own; what elides a vowel keeps its apostrophe: "l'" and "hôtel".
PIECE = re.compile(r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u0e7f])+['\u2019]?")
LATIN = re.compile(r"[a-z\u00c0-\u024f\u1e00-\u1eff]", re.IGNORECASE)

# By `assistant.lab.language_weights`; read once, 4 MB.
WEIGHTS = Path(__file__).with_suffix(".npz")
LONGEST_GRAM = 4

DEFAULT = "en"
# Characters: a longer text is no better evidence, and takes longer.
SAMPLE = 1000
# A document is called by a language that has this chance. Of XQuAD's 2,400 questions (CC BY-SA 4.0,
# twelve languages) .992 are called rightly, and of 727 English headings all but two.
SURE = 0.8
# A text is told to be in a foreign language from this chance on. Of 9,767 sentences, rows and lines
# of code of 247 English pages .002 would be taken for another language: rows of a table, names and
# lines of a shell.
FOREIGN = 0.95
FEWEST = 4  # pieces: fewer tell no language


def pieces(text: str) -> list[str]:
    """Return the runs of letters, in small letters."""
    return PIECE.findall(text.lower().replace("\u2019", "'"))


def without_names(found: list[str]) -> list[str]:
    """Return the pieces in other letters, where these are a third: names of products are Latin."""
    others = [piece for piece in found if not LATIN.match(piece)]
    return others if 3 * sum(map(len, others)) >= sum(map(len, found)) else found


def scripts(piece: str) -> set[str]:
    """Return what Unicode calls the scripts of the letters: "LATIN", "CJK", "HIRAGANA"."""
    letters = piece.rstrip("'")
    return {unicodedata.name(letter, "").partition(" ")[0] for letter in letters}


def features(piece: str, count: int) -> list[int]:
    """Return the buckets, below `count`, of a run of letters, its scripts and its n-grams."""
    whole = f"<{piece}>"
    grams = [
        whole[begin : begin + length]
        for length in range(1, LONGEST_GRAM + 1)
        for begin in range(len(whole) - length + 1)
    ]
    # With a space, that no n-gram has.
    names = [f"{whole} ", *(f"{script} " for script in sorted(scripts(piece)))]
    return buckets((*names, *grams), count)


def probabilities(text: str) -> dict[str, float]:
    """Return how likely each language is, summing to 1; empty without a letter."""
    model = layer(WEIGHTS)
    found = [
        bucket
        for piece in without_names(pieces(text[:SAMPLE]))
        for bucket in features(piece, len(model.rows))
    ]
    return model.probabilities(found) if found else {}


def likeliest(chances: Mapping[str, float]) -> str:
    """Return the language with the highest chance; English when there is none."""
    return max(chances, key=lambda language: chances[language], default=DEFAULT)


def prose(text: str) -> str:
    """`text` without code, addresses, identifiers and abbreviations."""
    plain = CODE.sub(" ", text)
    # Somebody who writes everything in capitals is not writing abbreviations.
    return plain if plain.isupper() else INNER_CAPITAL.sub(" ", plain)


def language(content: str) -> str:
    """Return the language of a text; English when there is too little of it to tell."""
    chances = probabilities(" ".join(prose(content[: 4 * SAMPLE]).split()))
    best = likeliest(chances)
    return best if chances.get(best, 0) >= SURE else DEFAULT


def surely(text: str) -> str:
    """Return the language of a text where that is beyond doubt; else nothing."""
    plain = prose(text)
    chances = probabilities(plain)
    best = likeliest(chances)
    is_sure = len(pieces(plain)) >= FEWEST and chances.get(best, 0) >= FOREIGN
    return best if is_sure else ""


def is_no_language(text: str) -> bool:
    """Whether the words of a text are not surely of any language.

    Of 2,349 questions in twelve languages (XQuAD) and claims (WiCE) .005 are told so, and of 600
    texts of random letters, syllables or neighbouring keys .92.
    """
    plain = prose(text)
    return len(pieces(plain)) >= FEWEST and max(probabilities(plain).values(), default=1) < SURE


def is_foreign(text: str, original: str, language: str) -> bool:
    """Whether a text is surely neither in the language of its original nor in the one asked for.

    Not told where that is a language which the model does not know.
    """
    plain = prose(text)
    chances = probabilities(plain)
    wanted = {_base(language), likeliest(probabilities(prose(original)))}
    if len(pieces(plain)) < FEWEST or _base(language) not in chances:
        return False
    best = likeliest(chances)
    return best not in wanted and chances[best] >= FOREIGN


def is_translated(text: str, original: str, language: str = "") -> bool:
    """Whether a text is in another language than its original: the one that was asked for.

    Any other will do where none is named.
    """
    chances = probabilities(prose(text))
    best = likeliest(chances)
    wanted = _base(language) or best
    return (
        wanted != likeliest(probabilities(prose(original)))
        and best == wanted
        and chances.get(best, 0) >= SURE
    )


def _base(language: str) -> str:
    return language.partition("-")[0]
