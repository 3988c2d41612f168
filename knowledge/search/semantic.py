"""Semantic level: chunks whose vectors lie nearest to the question's."""

from collections.abc import Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pgvector import Vector

from knowledge.embedding import DIMENSIONS, MODEL
from knowledge.search.fusion import Ranking

# The cast and the literal model are what lets the planner use the model's partial index.
STATEMENT = f"""
SELECT asked.place, near.chunk_id
FROM unnest(%(vectors)s::text[]::halfvec[]) WITH ORDINALITY AS asked (vector, place),
LATERAL (
    SELECT knowledge_vector.chunk_id,
        knowledge_vector.embedding::halfvec({DIMENSIONS}) <=> asked.vector AS distance
    FROM knowledge_vector
        JOIN knowledge_chunk ON knowledge_chunk.id = knowledge_vector.chunk_id
        JOIN knowledge_document ON knowledge_document.id = knowledge_chunk.document_id
    WHERE knowledge_vector.model = %(model)s
        AND knowledge_document.collection_id = ANY(%(collections)s)
    ORDER BY distance LIMIT %(limit)s
) AS near
ORDER BY asked.place, near.distance, near.chunk_id
"""  # noqa: S608

# Without iterative scans a filter would be applied to the first few hits only, and a small
# collection beside a large one would find nothing. pgvector has them since 0.8, and an unknown
# setting is an error, so older versions are left alone. Local to the transaction.
SETTINGS = """
SELECT set_config(name, value, true)
FROM pg_extension, (
    VALUES ('hnsw.iterative_scan', 'strict_order'), ('hnsw.ef_search', '100')
) AS wish (name, value)
WHERE extname = 'vector'
    AND (name = 'hnsw.ef_search' OR string_to_array(extversion, '.')::int[] >= '{0,8}')
"""


def find(vectors: NDArray[np.float32], *, collections: Sequence[int], limit: int) -> list[Ranking]:
    """Return per vector the ids of at most `limit` chunks, nearest first.

    Must run inside a transaction.
    """
    rankings: list[Ranking] = [[] for _ in vectors]
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        cursor.execute(
            STATEMENT,
            {
                "vectors": [Vector(vector).to_text() for vector in vectors],
                "model": MODEL,
                "collections": list(collections),
                "limit": limit,
            },
        )
        for place, chunk_id in cursor.fetchall():
            rankings[place - 1].append(chunk_id)
    return rankings
