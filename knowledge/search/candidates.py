"""Candidates: the chunks a search weighs against each other, with their vectors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import DIMENSIONS, MODEL
from knowledge.models import Chunk, Vector
from knowledge.search.found import Passage


@dataclass(frozen=True)
class Candidate:
    """A chunk on its way into the results."""

    chunk: Chunk
    score: float
    vector: NDArray[np.float32]  # zeros when the chunk has none
    cosine: float | None

    @property
    def place(self) -> tuple[str, tuple[str, ...]]:
        """The document and the section it stands in."""
        return self.chunk.document_id, tuple(self.chunk.section)

    def passage(self) -> Passage:
        """Return what the caller of a search gets to see."""
        document = self.chunk.document
        return Passage(
            chunk_id=self.chunk.pk,
            document_id=document.pk,
            version=document.version,
            title=document.title,
            section=" > ".join(self.chunk.section),
            crumbs=list(document.crumbs),
            source=document.source,
            language=document.language,
            text=self.chunk.text,
            score=round(self.score, 6),
            cosine=None if self.cosine is None else round(self.cosine, 4),
        )


def load(
    scores: Mapping[int, float], questions: NDArray[np.float32] | None = None
) -> list[Candidate]:
    """Return the chunks of `scores` in its order; those deleted meanwhile are left out.

    `questions` holds a unit vector per wording; a cosine is that with the nearest of them.
    """
    chunks = Chunk.objects.filter(pk__in=scores).select_related("document")
    by_id = {chunk.pk: chunk for chunk in chunks.defer("search", "document__content")}
    vectors = dict(
        Vector.objects.filter(chunk__in=scores, model=MODEL).values_list("chunk_id", "embedding")
    )
    return [
        candidate(by_id[chunk_id], score, vectors.get(chunk_id), questions)
        for chunk_id, score in scores.items()
        if chunk_id in by_id
    ]


def candidate(
    chunk: Chunk,
    score: float,
    vector: NDArray[np.float32] | None,
    questions: NDArray[np.float32] | None,
) -> Candidate:
    """Return the chunk with its similarity to the question."""
    if vector is None:
        return Candidate(chunk, score, np.zeros(DIMENSIONS, dtype=np.float32), None)
    cosine = None if questions is None else float((questions @ vector).max())
    return Candidate(chunk, score, vector, cosine)
