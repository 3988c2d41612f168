"""Expansion: other texts that are searched for beside the question."""

from collections.abc import Callable, Sequence
from typing import Literal

from django.conf import settings

from knowledge.search.explanation import Wording

Alternatives = Callable[[str], Sequence[tuple[Literal["expand", "hyde"], str, float]]]

# A second wording is somebody's guess at what was meant.
ALTERNATIVE_WEIGHT = 0.7
WANTED = {"off": (), "expand": ("expand",), "hyde": ("hyde",), "both": ("expand", "hyde")}
# What stands in the statistics of a search that wanted other texts and got none.
NOBODY = "no model is set up to write them"

_sources: list[Alternatives] = []


def register(alternatives: Alternatives) -> None:
    """Let `alternatives(question)` return (kind, text, weight) of what else to search for.

    "expand" is the question in other words, "hyde" a passage that would answer it. The weight is
    beside the question's, which is 1. It returns nothing when it cannot, and does not raise.
    """
    _sources.append(alternatives)


def wordings(question: str, alternative: str = "") -> tuple[list[Wording], str]:
    """Return what to search for, and what became of SEARCH_EXPANSION."""
    given = [
        Wording(question.strip(), "question", 1.0),
        Wording(alternative.strip(), "alternative", ALTERNATIVE_WEIGHT),
    ]
    texts = [each for each in given if each.text]
    wanted = WANTED[settings.SEARCH_EXPANSION]
    if not wanted or not texts:
        return texts, "off"
    if not _sources:
        return texts, NOBODY
    made = [
        Wording(text, kind, weight)
        for alternatives in _sources
        for kind, text, weight in alternatives(texts[0].text)
        if kind in wanted and text.strip()
    ]
    return [*texts, *made], f"{len(made)} more"
