"""Citing: markers in an answer, and whether a passage says what is cited from it."""

import re
from typing import Literal

from agents.terms import terms, words

CitationStatus = Literal["verified", "weak", "unsupported"]

MARKER = re.compile(r"\[(C\d+)\]")
# This share of a sentence's terms in one passage still counts as said by it.
WEAK = 0.75


def markers(text: str) -> list[str]:
    """The markers used in `text`, each once, in order: "C1"."""
    return list(dict.fromkeys(MARKER.findall(text)))


def without_markers(text: str) -> str:
    """`text` as it reads without its markers."""
    return re.sub(r"\s+([.,;:!?])", r"\1", re.sub(r"[ \t]*\[C\d+\]", "", text)).strip()


def _normal(text: str) -> str:
    return " ".join(words(without_markers(text)))


def support(sentence: str, passage: str) -> CitationStatus:
    """Whether `passage` says `sentence`: word for word, by most of its terms, or not."""
    said = _normal(sentence)
    if said and f" {said} " in f" {_normal(passage)} ":
        return "verified"
    wanted = set(terms(without_markers(sentence)))
    if not wanted:
        return "unsupported"
    return "weak" if len(wanted & set(terms(passage))) / len(wanted) >= WEAK else "unsupported"
