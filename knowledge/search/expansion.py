"""Expansion: other texts that are searched for beside the question."""

from collections.abc import Callable, Sequence
from typing import Literal

from django.conf import settings

from knowledge.search.explanation import Wording
from knowledge.search.languages import languages_in
from knowledge.search.scope import Scope

Kind = Literal["expand", "hyde"]
Alternatives = Callable[[str, Sequence[str]], Sequence[tuple[Kind, str, float]]]

OFF = "off"
KINDS: dict[str, tuple[Kind, ...]] = {
    OFF: (),
    "expand": ("expand",),
    "hyde": ("hyde",),
    "both": ("expand", "hyde"),
}
# What stands in the statistics of a search that wanted other texts and got none.
NO_MODEL = "no model is set up to write them"


class NotExpandedError(Exception):
    """Nothing was written beside the question; the message says why."""


_sources: list[Alternatives] = []


def register(alternatives: Alternatives) -> None:
    """Let `alternatives(question, languages)` return (kind, text, weight) of what else to look for.

    `languages` are the codes of those the documents are written in, the commonest first. "expand"
    is the question in other words, "hyde" a passage that would answer it; only `enabled_kinds` are
    used. The weight is beside the question's, which is 1. Where it cannot write anything it raises
    NotExpandedError.
    """
    _sources.append(alternatives)


def enabled_kinds() -> tuple[Kind, ...]:
    """Return the kinds that SEARCH_EXPANSION asks for."""
    return KINDS[settings.SEARCH_EXPANSION]


def expand(wordings: Sequence[Wording], scope: Scope) -> tuple[list[Wording], str]:
    """Return the wordings with the texts that are searched for beside them, and how many or why.

    No transaction may be open: who writes other texts takes a while.
    """
    languages = languages_in(scope) if _sources else []
    others, notes = write_alternatives(wordings[0].text, languages)
    note = "; ".join([f"{len(others)} more", *notes] if others else notes) or NO_MODEL
    return [*wordings, *others], note


def write_alternatives(question: str, languages: Sequence[str]) -> tuple[list[Wording], list[str]]:
    """Return the other texts, and why there are not more."""
    others: list[Wording] = []
    notes: list[str] = []
    for alternatives in _sources:
        try:
            written = alternatives(question, languages)
        except NotExpandedError as error:
            notes.append(str(error))
            continue
        others += [
            Wording(text.strip(), kind, weight)
            for kind, text, weight in written
            if kind in enabled_kinds() and text.strip()
        ]
    return others, notes
