"""Spaces: where the candidates lie, as one embedding model sees them and the question."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from knowledge.search.fusion import Scores, unit
from knowledge.search.near import Vectors, ids, texts
from knowledge.search.scales import received, scale

# A subquery, because a join would read every document.
PARTS = """
SELECT id, section_id,
    (SELECT collection_id FROM knowledge_document WHERE knowledge_document.id = document_id)
FROM knowledge_chunk WHERE id = ANY(%s::bigint[]) ORDER BY id
"""
# A section or document without a vector of the model lies where the chunk does.
VECTORS = """
SELECT chunk.id, halfvec_send(vector.embedding),
    ARRAY(SELECT 1 - (coalesce(of_section.embedding, vector.embedding) <=> asked)
        FROM unnest(wording.vectors) AS asked),
    ARRAY(SELECT 1 - (coalesce(of_document.embedding, vector.embedding) <=> asked)
        FROM unnest(wording.vectors) AS asked)
FROM (SELECT %(vectors)s::text[]::halfvec[]) AS wording (vectors), knowledge_chunk AS chunk
    JOIN knowledge_chunkvector AS vector ON vector.chunk_id = chunk.id
        AND vector.model = %(model)s AND vector.collection_id = ANY(%(collections)s)
    LEFT JOIN knowledge_sectionvector AS of_section
        ON of_section.section_id = chunk.section_id AND of_section.model = %(model)s
    LEFT JOIN knowledge_documentvector AS of_document
        ON of_document.document_id = chunk.document_id AND of_document.model = %(model)s
WHERE chunk.id = ANY(%(chunks)s::bigint[])
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


def parts(chunks: Sequence[int]) -> list[Part]:
    """Return the chunks in the order of their ids, without those deleted meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(PARTS, [ids(chunks)])
        return [Part(*row) for row in cursor.fetchall()]


def space(
    found: Sequence[Part], model: str, questions: Vectors, collections: Sequence[int]
) -> Space | None:
    """Return the space of the model that `collections` use; None when no candidate is in it."""
    place_of = {each.chunk: place for place, each in enumerate(found)}
    with connection.cursor() as cursor:
        cursor.execute(
            VECTORS,
            {
                "chunks": ids(list(place_of)),
                "vectors": texts(questions),
                "model": model,
                "collections": list(collections),
            },
        )
        rows = cursor.fetchall()
    if not rows:
        return None
    chunks, sent, sections, documents = zip(*rows, strict=True)
    return Space(
        scale=scale(model),
        questions=questions,
        rows=np.array([place_of[chunk] for chunk in chunks], dtype=np.intp),
        chunks=received(sent),
        sections=np.array(sections).T,
        documents=np.array(documents).T,
    )


def likeness(spaces: Sequence[Space], places: Sequence[int]) -> Vectors:
    """Return the cosine of each pair; 0 without vectors, or with those of different models."""
    alike = np.zeros((len(places), len(places)), dtype=np.float32)
    for each in spaces:
        row_of = {place: row for row, place in enumerate(each.rows.tolist())}
        there = [number for number, place in enumerate(places) if place in row_of]
        vectors = each.chunks[[row_of[places[number]] for number in there]]
        alike[np.ix_(there, there)] = vectors @ vectors.T
    return alike
