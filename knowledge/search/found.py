"""Found: what a search gives back."""

from dataclasses import dataclass, field
from typing import Any, Literal

from knowledge.search.explanation import Explanation

Quality = Literal["excellent", "good", "poor"]


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
class Found:
    """The passages of one search, best first, and how far they can be trusted."""

    passages: tuple[Passage, ...]
    quality: Quality
    no_context: bool
    error: str = ""  # why semantic search was left out
    stats: dict[str, Any] = field(default_factory=dict)
    explain: Explanation | None = None  # only when it was asked for
