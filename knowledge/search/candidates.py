"""Candidates: the chunks a search shows, with their documents."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.db import connection

from knowledge.search.found import Passage
from knowledge.search.near import ids

STATEMENT = """
SELECT chunk.id, chunk.section_id, document.id, document.version, document.title, section.path,
    document.crumbs, document.source, document.language, chunk.page, chunk.text
FROM knowledge_chunk AS chunk
    JOIN knowledge_section AS section ON section.id = chunk.section_id
    JOIN knowledge_document AS document ON document.id = chunk.document_id
WHERE chunk.id = ANY(%s::bigint[])
"""


@dataclass(frozen=True)
class Candidate:
    """A chunk as somebody may see it."""

    chunk_id: int
    section_id: int
    document_id: str
    version: int
    title: str
    path: list[str]
    crumbs: list[str]
    source: str
    language: str
    page: int | None
    text: str

    def passage(self, score: float, cosine: float | None) -> Passage:
        """Return what the caller of a search gets to see."""
        return Passage(
            chunk_id=self.chunk_id,
            document_id=self.document_id,
            version=self.version,
            title=self.title,
            section=self.section,
            crumbs=self.crumbs,
            source=self.place,
            language=self.language,
            text=self.text,
            score=round(score, 6),
            cosine=None if cosine is None else round(cosine, 4),
            page=self.page,
        )

    @property
    def section(self) -> str:
        """The headings above it."""
        return " > ".join(self.path)

    @property
    def place(self) -> str:
        """The source, of a PDF with the page it begins on, as browsers understand it."""
        is_pdf = urlsplit(self.source).path.lower().endswith(".pdf")
        if is_pdf and self.page and "#" not in self.source:
            return f"{self.source}#page={self.page}"
        return self.source


def load(chunks: Sequence[int]) -> dict[int, Candidate]:
    """Return the chunks by id, without those deleted meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(STATEMENT, [ids(chunks)])
        return {row[0]: candidate(row) for row in cursor.fetchall()}


def candidate(row: tuple[Any, ...]) -> Candidate:
    """Return the candidate of a row; lists come as JSON."""
    chunk, section, document, version, title, path, crumbs, *rest = row
    return Candidate(
        chunk, section, document, version, title, json.loads(path), json.loads(crumbs), *rest
    )
