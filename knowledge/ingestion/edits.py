"""Edits: what staff wrote over what a file says of itself, and how long that holds.

An edit holds for as long as the file says of itself what it said when the edit was made, however
often it is taken in and whatever else in it changes. Once the file's own word is another, the file
counts again: whoever keeps the file has the last word.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from knowledge.parsing import Page

EDITABLE = ("title", "audience", "description")
# Field → {"said": what staff wrote, "over": [what the file may say for that to hold]}.
Edits = Mapping[str, Mapping[str, Any]]
NO_EDITS: Edits = {}


def own_words(page: Page) -> dict[str, str]:
    """Return what a page says of itself in the fields that can be edited."""
    return {name: getattr(page, name) for name in EDITABLE}


def standing(edits: Edits, own: Mapping[str, str]) -> dict[str, Any]:
    """Return the edits that hold over these words of a file."""
    return {
        name: dict(edit)
        for name, edit in edits.items()
        if own.get(name) in {*edit["over"], edit["said"]}
    }


def edited(page: Page, edits: Edits) -> Page:
    """Return the page as staff call it."""
    return replace(page, **{name: edit["said"] for name, edit in edits.items()})
