"""Expansion: other texts that are searched for beside the question."""

from collections.abc import Callable, Sequence
from typing import Literal

from django.conf import settings

from knowledge.search.explanation import Wording
from knowledge.search.scope import Scope, languages_in

Kind = Literal["expand", "hyde"]
Alternatives = Callable[[str, Sequence[str]], Sequence[tuple[Kind, str, float]]]

# A second wording is somebody's guess at what was meant.
ALTERNATIVE_WEIGHT = 0.7
WANTED: dict[str, tuple[Kind, ...]] = {
    "off": (),
    "expand": ("expand",),
    "hyde": ("hyde",),
    "both": ("expand", "hyde"),
}
# What stands in the statistics of a search that wanted other texts and got none.
NOBODY = "no model is set up to write them"


class NotExpandedError(Exception):
    """Nothing was written beside the question; the message says why."""


_sources: list[Alternatives] = []


def register(alternatives: Alternatives) -> None:
    """Let `alternatives(question, languages)` return (kind, text, weight) of what else to look for.

    `languages` are the codes of those the documents are written in, the commonest first. "expand"
    is the question in other words, "hyde" a passage that would answer it; only what is `wanted` is
    used. The weight is beside the question's, which is 1. Where it cannot write anything it raises
    NotExpandedError.
    """
    _sources.append(alternatives)


def wanted() -> tuple[Kind, ...]:
    """Return the kinds that SEARCH_EXPANSION asks for."""
    return WANTED[settings.SEARCH_EXPANSION]


def wordings(question: str, alternative: str, where: Scope) -> tuple[list[Wording], str]:
    """Return what to search for there, and what became of SEARCH_EXPANSION.

    No transaction may be open: who writes other texts takes a while.
    """
    given = [
        Wording(question.strip(), "question", 1.0),
        Wording(alternative.strip(), "alternative", ALTERNATIVE_WEIGHT),
    ]
    texts = [each for each in given if each.text]
    if not wanted() or not texts:
        return texts, "off"
    made, notes = written(texts[0].text, languages_in(where) if _sources else [])
    return [*texts, *made], "; ".join([f"{len(made)} more", *notes] if made else notes) or NOBODY


def written(question: str, languages: Sequence[str]) -> tuple[list[Wording], list[str]]:
    """Return the other texts, and why there are not more."""
    made: list[Wording] = []
    notes: list[str] = []
    for alternatives in _sources:
        try:
            said = alternatives(question, languages)
        except NotExpandedError as error:
            notes.append(str(error))
            continue
        made += [
            Wording(text.strip(), kind, weight)
            for kind, text, weight in said
            if kind in wanted() and text.strip()
        ]
    return made, notes
