"""Preparation: a page cut into chunks, with all that rules can say of it.

Whatever takes longer the longer or stranger a text is happens here, so that it can happen in the
process that parses: it needs neither the settings nor the database.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from knowledge import chunking, enrichment
from knowledge.parsing import Page
from knowledge.tokens import WINDOW

# What a page says about itself stands beside every one of its chunks, so it is kept short.
TITLE, NAME, CRUMBS = 500, 100, 20  # characters, characters, folders


@dataclass(frozen=True)
class Prepared:
    """A page with title, crumbs, language and enrichment, and what it is cut into."""

    page: Page
    parts: list[chunking.Part]
    headings: list[str]


def prepare(page: Page, origin: str, folders: Sequence[str], *, window: int = WINDOW) -> Prepared:
    """Return the page ready to be described, embedded and stored.

    `origin` and `folders` name it where it says nothing itself. Its chunks go by the keywords that
    rules find. `window` is how many tokens the embedding model sees. Its warnings are those of
    enrichment: who opened the file has passed on its own.
    """
    named = replace(
        page,
        title=(page.title or title_from_name(PurePosixPath(origin).stem))[:TITLE],
        audience=page.audience[:NAME],
        edition=page.edition[:NAME],
        crumbs=[
            crumb[:TITLE]
            for crumb in (page.crumbs or [title_from_name(folder) for folder in folders])[:CRUMBS]
        ],
    )
    whole = replace(named, **vars(enrichment.by_rules(named)))
    parts = chunking.chunk(
        whole.title, whole.content, whole.keywords, window=window, starts=whole.starts
    )
    return Prepared(whole, parts, enrichment.headings(whole.content))


def title_from_name(name: str) -> str:
    """Return a file's or folder's name as a title: "users-roles" as "Users roles"."""
    title = re.sub(r"[-_\s]+", " ", name).strip()
    return title[:1].upper() + title[1:] or name
