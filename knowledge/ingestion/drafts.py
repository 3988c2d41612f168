"""Drafts: a page made ready to be stored, everything but its vectors."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha1
from pathlib import PurePosixPath

from knowledge import chunking, enrichment
from knowledge.errors import Unreadable
from knowledge.models import Document
from knowledge.parsing import Page, parse

# PostgreSQL's text search configurations of version 15, by language tag. What is not listed is
# indexed word by word, without stems.
CONFIGS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A page, where it comes from, and the digest that tells whether it changed."""

    origin: str
    source: str
    sha1: str
    page: Page


@dataclass(frozen=True)
class Draft:
    """A document as it will be stored, with its chunks."""

    sheet: Sheet
    page: Page  # the sheet's, with what it left unsaid filled in
    parts: Sequence[chunking.Part]

    @property
    def config(self) -> str:
        """The text search configuration of its language."""
        return CONFIGS.get(self.page.language.split("-")[0], "simple")

    def embedded(self) -> list[str]:
        """Return what the embedding model is to see, chunk by chunk."""
        return [chunking.embedded(self.page.title, each.section, each.text) for each in self.parts]


def digest(content: bytes) -> str:
    """Return the SHA-1 of the content, which tells change and protects nothing."""
    return sha1(content, usedforsecurity=False).hexdigest()


def sheets(origin: str, body: bytes) -> Iterator[Sheet]:
    """Yield the pages of a file. Raises Unreadable.

    A file that is one page is known by its bytes; of several in one file each has a digest of its
    own, so that a change to one leaves the others alone.
    """
    pages = parse(origin, body)
    for number, page in enumerate(pages, start=1):
        alone = len(pages) == 1
        source = page.source or (origin if alone else f"{origin}#{number}")
        content = body if alone else json.dumps(asdict(page), default=str).encode()
        yield Sheet(origin, source, digest(content), page)


def draft(sheet: Sheet, folders: Sequence[str]) -> Draft:
    """Return the document with its chunks and what can be said about it. Raises Unreadable."""
    limit = Document._meta.get_field("source").max_length or 0
    if max(len(sheet.source), len(sheet.origin)) > limit:
        raise Unreadable(f"its path or URL is longer than {limit} characters")
    page = filled(sheet, folders)
    parts = chunking.chunk(page.title, page.content, page.keywords)
    if not parts:
        raise Unreadable("there is too little text in it to be found by")
    return Draft(sheet, page, parts)


def filled(sheet: Sheet, folders: Sequence[str]) -> Page:
    """Return the page with title, crumbs, language and enrichment that the file left out."""
    page = sheet.page
    title = (page.title or named_like(PurePosixPath(sheet.origin).stem))[:500]
    language = page.language or enrichment.language(page.content)
    about = f"{page.description} {page.summary}"
    found = enrichment.keywords(title, page.content, about=about, language=language)
    # Tags are few and say where a page belongs; what it speaks of is in its words.
    keywords = list(dict.fromkeys([*page.keywords, *found]))[: enrichment.KEYWORDS_LIMIT]
    return replace(
        page,
        title=title,
        language=language,
        keywords=keywords,
        audience=page.audience[:100],
        crumbs=page.crumbs or [named_like(folder) for folder in folders],
        description=page.description or enrichment.description(page.content),
        summary=page.summary or enrichment.summary(page.content, keywords),
        keypoints=page.keypoints or enrichment.keypoints(page.content),
    )


def named_like(name: str) -> str:
    """Return a file's or folder's name as a title: "users-roles" as "Users roles"."""
    words = re.sub(r"[-_\s]+", " ", name).strip()
    return words[:1].upper() + words[1:] or name
