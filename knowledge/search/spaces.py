"""Spaces: where the candidates lie, as one embedding model sees them and the question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowledge.search import binary
from knowledge.search.encoding import Encoded
from knowledge.search.fusion import Scores, unit
from knowledge.search.near import Vectors
from knowledge.search.scales import scale
from knowledge.search.statements import Asked, Row, array

# A subquery, because a join would read every document. A section or document without a vector of
# the model lies where the chunk does.
PARTS = """
SELECT chunk.id, chunk.section_id,
    (SELECT collection_id FROM knowledge_document WHERE knowledge_document.id = chunk.document_id)
FROM knowledge_chunk AS chunk WHERE chunk.id = ANY(%(chunks)s::bigint[]) ORDER BY chunk.id
"""
VECTORS = """
SELECT chunk.id, chunk.section_id, coalesce(vector.collection_id, (
        SELECT collection_id FROM knowledge_document
        WHERE knowledge_document.id = chunk.document_id
    )),
    halfvec_send(vector.embedding), ARRAY(
        SELECT unnest(ARRAY[
            1 - (coalesce(of_section.embedding, vector.embedding) <=> asked),
            1 - (coalesce(of_document.embedding, vector.embedding) <=> asked)
        ]) FROM unnest(wording.vectors) AS asked
    )
FROM (SELECT %(vectors)s::text[]::halfvec[]) AS wording (vectors), knowledge_chunk AS chunk
    LEFT JOIN knowledge_chunkvector AS vector ON vector.chunk_id = chunk.id
        AND vector.model = %(model)s AND vector.collection_id = ANY(%(collections)s::bigint[])
    LEFT JOIN knowledge_sectionvector AS of_section
        ON of_section.section_id = chunk.section_id AND of_section.model = %(model)s
    LEFT JOIN knowledge_documentvector AS of_document
        ON of_document.document_id = chunk.document_id AND of_document.model = %(model)s
WHERE chunk.id = ANY(%(chunks)s::bigint[]) ORDER BY chunk.id
"""
# Relevance feedback, Rocchio 1971 ("The SMART Retrieval System", 14): the question moves towards
# the mean of its best three by this part of its length. Measured on five judged collections: 0.2
# to 0.5 and three to ten are about equally good.
BEST, STEP = 3, 0.3


@dataclass(frozen=True)
class Part:
    """A chunk, and what it is a part of."""

    chunk: int
    section: int
    collection: int


@dataclass(frozen=True)
class Space:
    """The candidates that have a vector of one model; vectors of length 1, float32."""

    scale: float  # what makes its cosines as different as the local model's
    questions: Vectors  # a row per wording
    rows: NDArray[np.intp]  # places of these chunks among all candidates
    chunks: Vectors  # a row per chunk
    sections: Scores  # similarities, (wordings, chunks)
    documents: Scores

    def semantic(self) -> Scores:
        """Return how similar the chunks are to the wordings, (wordings, chunks)."""
        return (self.questions @ self.chunks.T).astype(np.float64)

    def moved(self, scores: Scores) -> Scores:
        """Return how similar they are to the wordings moved towards the best of all candidates."""
        best = np.argsort(-scores[self.rows], kind="stable")[:BEST]
        questions = unit(self.questions + STEP * self.chunks[best].mean(axis=0))
        return (questions @ self.chunks.T).astype(np.float64)

    def spread(self, own: Scores, candidates: int) -> Scores:
        """Return similarities as (wordings, candidates), NaN for the chunks of others."""
        found = np.full((len(own), candidates), np.nan)
        found[:, self.rows] = own
        return found


def ask(
    chunks: Iterable[int], sent: Mapping[str, list[str]], models: Mapping[str, Sequence[int]]
) -> dict[str, Asked]:
    """Ask where the chunks are, as each model sees them.

    `sent` holds the wordings' vectors of each model, as `texts` gives them, `models` the
    collections whose vectors are of it. Without vectors, ask for the chunks alone.
    """
    values: dict[str, Any] = {"chunks": array(chunks)}
    if not sent:
        return {"": Asked(PARTS, values)}
    place = {
        model: {"model": model, "collections": array(models[model]), "vectors": vectors}
        for model, vectors in sent.items()
    }
    return {model: Asked(VECTORS, values | place[model]) for model in sent}


def received(asked: Mapping[str, Asked], vectors: Encoded) -> tuple[list[Part], list[Space]]:
    """Return the chunks in the order of their ids, without those deleted meanwhile, and the spaces.

    A space that none of the chunks lies in is left out.
    """
    spaces = []
    for model, each in asked.items():
        there = each.rows()
        own = {place: row[3:] for place, row in enumerate(there) if row[3:] and row[3]}
        if own:
            spaces.append(space(model, vectors[model], own))
    return [Part(*row[:3]) for row in there], spaces


def space(model: str, questions: Vectors, stored: Mapping[int, Row]) -> Space:
    """Return the space; `stored` holds by place each chunk's vector, as sent, and similarities."""
    sent, similarities = zip(*stored.values(), strict=True)
    sections, documents = np.array(similarities).reshape(len(sent), -1, 2).T
    return Space(
        scale=scale(model),
        questions=questions,
        rows=np.array([*stored], dtype=np.intp),
        chunks=binary.vectors(sent),
        sections=sections,
        documents=documents,
    )


def likeness(spaces: Sequence[Space], places: Sequence[int]) -> Vectors:
    """Return the cosine of each pair; 0 without vectors, or with those of different models."""
    alike = np.zeros((len(places), len(places)), dtype=np.float32)
    for each in spaces:
        there = np.flatnonzero(np.isin(places, each.rows))
        vectors = each.chunks[np.searchsorted(each.rows, np.asarray(places, dtype=int)[there])]
        alike[np.ix_(there, there)] = vectors @ vectors.T
    return alike
