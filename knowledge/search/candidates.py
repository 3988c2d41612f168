"""Candidates: the chunks a search shows, with their documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from knowledge.search.found import Passage
from knowledge.search.statements import Asked, array, together

STATEMENT = """
SELECT chunk.id, chunk.section_id, document.id, document.version, document.title,
    ARRAY(SELECT jsonb_array_elements_text(section.path)),
    ARRAY(SELECT jsonb_array_elements_text(document.crumbs)), document.source, document.language,
    chunk.page, chunk.text
FROM knowledge_chunk AS chunk
    JOIN knowledge_section AS section ON section.id = chunk.section_id
    JOIN knowledge_document AS document ON document.id = chunk.document_id
WHERE chunk.id = ANY(%(chunks)s::bigint[])
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
        if not self.page or "#" in self.source:
            return self.source
        is_pdf = urlsplit(self.source).path.lower().endswith(".pdf")
        return f"{self.source}#page={self.page}" if is_pdf else self.source


def ask(chunks: Sequence[int]) -> Asked:
    """Ask for the chunks."""
    return Asked(STATEMENT, {"chunks": array(chunks)})


def received(asked: Asked) -> dict[int, Candidate]:
    """Return the chunks by id, without those deleted meanwhile."""
    return {row[0]: Candidate(*row) for row in asked.rows()}


def load(chunks: Sequence[int]) -> dict[int, Candidate]:
    """Ask for the chunks and return them."""
    with together():
        return received(ask(chunks))
