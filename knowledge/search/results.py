"""Results: what a search gives back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from django.db.models import Q

from knowledge.chunking import HEADINGS_KEPT
from knowledge.models import Chunk, Section
from knowledge.search.explanation import Explanation
from knowledge.search.sql import Query, array_literal, one_transaction

Quality = Literal["excellent", "good", "poor"]

# A section of so many words at most only leads to those below it: "There are two ways". They follow
# until there are so many characters. Of 141 questions to the pages of four products 15 among their
# first three places were such; the answer stood in three more replies.
LEADING, ENOUGH, MOST_BELOW = 40, 1000, 6


@dataclass(frozen=True)
class Passage:
    """A chunk found by search, with all a citation needs.

    `score` is the fused score, comparable within one search only. `cosine` is the
    similarity to the question (to the nearer of two wordings), None when the question could not
    be embedded or the chunk has no vector.
    """

    chunk_id: int
    document_id: str
    version: int
    edition: str  # the document's own version, as it names it; empty where it names none
    title: str
    section: str  # "Heading > Subheading", empty at the top of a document
    crumbs: list[str]
    source: str  # of a PDF with the page it begins on: "manual.pdf#page=12"
    language: str
    text: str
    score: float
    cosine: float | None
    page: int | None = None  # page or slide it begins on, where there are any


@dataclass(frozen=True)
class SearchResult:
    """The passages of one search, best first, and how far they can be trusted."""

    passages: tuple[Passage, ...]
    quality: Quality
    no_context: bool
    error: str = ""  # why semantic search was left out
    stats: dict[str, Any] = field(default_factory=dict)
    explain: Explanation | None = None  # only when it was asked for


CANDIDATES = """
SELECT chunk.id, chunk.section_id, document.id, document.version, document.edition,
    document.title,
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
    edition: str
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
            edition=self.edition,
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


def ask(chunks: Sequence[int]) -> Query:
    """Ask for the chunks."""
    return Query(CANDIDATES, {"chunks": array_literal(chunks)})


def fetch(query: Query) -> dict[int, Candidate]:
    """Return the chunks by id, without those deleted meanwhile."""
    return {row[0]: Candidate(*row) for row in query.rows()}


def load(chunks: Sequence[int]) -> dict[int, Candidate]:
    """Ask for the chunks and return them."""
    with one_transaction():
        return fetch(ask(chunks))


@dataclass(frozen=True)
class Surroundings:
    """The texts of the chunks before and after one, in the order of the document."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def neighbours(chunks: Iterable[int], *, distance: int = 1) -> dict[int, Surroundings]:
    """Return what stands beside the chunks with these ids, `distance` on either side.

    Across the borders of sections, never of the document; nothing for a chunk there is not.
    """
    rows_of_chunks = Chunk.objects.filter(pk__in=list(chunks))
    places = list(rows_of_chunks.values_list("pk", "document", "number"))
    spans = Q(pk__in=[])
    for _, document, number in places:
        spans |= Q(document=document, number__range=(number - distance, number + distance))
    rows = Chunk.objects.filter(spans).values_list("document", "number", "text")
    texts = {(document, number): text for document, number, text in rows}

    def texts_at(document: str, numbers: range) -> list[str]:
        return [texts[document, each] for each in numbers if (document, each) in texts]

    return {
        pk: Surroundings(
            before=texts_at(document, range(number - distance, number)),
            after=texts_at(document, range(number + 1, number + distance + 1)),
        )
        for pk, document, number in places
    }


def beside(chunk: int, distance: int) -> list[Passage]:
    """Return the chunk with this id and what stands beside it, in the order of the document.

    As `neighbours` has it; nothing for a chunk there is not.
    """
    places = dict(Chunk.objects.filter(pk=chunk).values_list("document", "number"))
    ids: list[int] = []
    for document, number in places.items():
        span = (number - distance, number + distance)
        rows = Chunk.objects.filter(document=document, number__range=span).order_by("number")
        ids += rows.values_list("pk", flat=True)
    return passages_of(ids)


def passages_of(chunks: Sequence[int]) -> list[Passage]:
    """Return the chunks with these ids that are there, in this order; nothing says how near."""
    candidates = load(chunks)
    return [candidates[each].passage(0.0, None) for each in chunks if each in candidates]


# Characters that two chunks must share for one to open with the end of the other: less happens by
# chance.
LEAST_OVERLAP = 12


def whole_sections(chunks: Iterable[int], most: int) -> dict[int, str]:
    """Return the text of the section that each chunk lies in, by the id of the chunk.

    Of a section longer than `most` characters, what goes on from the chunk, and what is before it
    as far as there is room. One that only leads to those below it has them begin behind it. A chunk
    deleted meanwhile is left out.
    """
    chunk_ids = list(chunks)
    of_section: dict[Section, list[Chunk]] = {}
    sections = Chunk.objects.filter(pk__in=chunk_ids).values("section")
    rows = Chunk.objects.filter(section__in=sections).select_related("section")
    for chunk in rows.order_by("number"):
        of_section.setdefault(chunk.section, []).append(chunk)
    return {
        chunk.pk: _leading_on(section, text_around([each.text for each in members], place, most))
        for section, members in of_section.items()
        for place, chunk in enumerate(members)
        if chunk.pk in chunk_ids
    }


def _leading_on(section: Section, text: str) -> str:
    """The section's text with those below it where it is too short to be all."""
    if len(text.split()) > LEADING:
        return text
    below = Chunk.objects.filter(document=section.document_id, section__number__gt=section.number)
    path = section.path
    for chunk in below.select_related("section").order_by("number")[:MOST_BELOW]:
        if len(text) > ENOUGH or not _is_below(chunk.section.path, section.path):
            break
        goes_on = chunk.section.path == path
        path = chunk.section.path
        text = joined(text, chunk.text if goes_on else f"**{path[-1]}**\n\n{chunk.text}")
    return text


def _is_below(path: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a section lies below the other; of each the last three headings are known."""
    return path != other and (
        path[: len(other)] == other or [*other, *path[-1:]][-HEADINGS_KEPT:] == path
    )


def text_around(texts: Sequence[str], place: int, most: int) -> str:
    """Return the text at `place` with those after it, then those before it, within `most`."""
    text = texts[place]
    for following in texts[place + 1 :]:
        longer = joined(text, following)
        if len(longer) > most:
            return text
        text = longer
    for preceding in reversed(texts[:place]):
        longer = joined(preceding, text)
        if len(longer) > most:
            break
        text = longer
    return text


def joined(before: str, after: str) -> str:
    """Return two chunks that follow each other as one text; what both hold stands there once."""
    for length in range(min(len(before), len(after)), LEAST_OVERLAP - 1, -1):
        if before.endswith(after[:length]):
            return before + after[length:]
    return f"{before}\n\n{after}"
