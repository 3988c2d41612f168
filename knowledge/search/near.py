"""Near: the levels that compare vectors — chunks, sections and documents near the question."""

from collections.abc import Sequence

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from knowledge.search import indexes
from knowledge.search.indexes import Kind
from knowledge.search.scope import Scope

# How many of each a level names. A section and a document stand for their nearest chunk.
LIMITS: dict[Kind, int] = {"chunk": 50, "section": 15, "document": 10}
# Signs alone order vectors coarsely: this many times as many are compared in full.
COARSE = 4
# An exact comparison takes 1 µs; a walk through the index takes as long as 900 of them, longer in
# proportion when only one in so many of the vectors on its way is in scope. They cost the same
# where the scope is about the square root of 900 times all there is.
EXACTLY, WALK = 1000, 900

# How far a walk looks around: so 0.99 of the ten nearest are found of 100,000 chunks, their 50,000
# sections and 10,000 documents.
AROUND: dict[Kind, int] = {"chunk": 160, "section": 200, "document": 40}

# Without iterative scans a filter would be applied to the first few hits only, and a small
# collection beside a large one would find nothing. pgvector has them since 0.8, and an unknown
# setting is an error, so older versions are left alone. Compiling takes longer than any of these
# statements. Local to the transaction.
SETTINGS = """
SELECT set_config('jit', 'off', true), set_config('hnsw.ef_search', '{around}', true), (
    SELECT set_config('hnsw.iterative_scan', 'strict_order', true) FROM pg_extension
    WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{{0,8}}'
)
"""
NEAREST = """
SELECT {kind}_id AS id, distance FROM (
    SELECT {kind}_id, {distance} AS distance FROM knowledge_{kind}vector AS vector
    WHERE model = %(model)s AND collection_id = ANY(%(of_model)s){condition}
    ORDER BY {order} LIMIT {coarse}
) AS walked ORDER BY distance LIMIT {limit}
"""
# A subquery, so that it is asked of each vector on the way, and the walk goes no further than
# needed.
CONDITION = {
    "chunk": """
        AND (SELECT {condition} FROM knowledge_chunk AS part
            JOIN knowledge_document AS document ON document.id = part.document_id
            WHERE part.id = vector.chunk_id)""",
    "section": """
        AND (SELECT {condition} FROM knowledge_section AS part
            JOIN knowledge_document AS document ON document.id = part.document_id
            WHERE part.id = vector.section_id)""",
    "document": """
        AND (SELECT {condition} FROM knowledge_document AS document
            WHERE document.id = vector.document_id)""",
}
CHUNK = "SELECT id FROM ({walk}) AS near"
CHUNK_OF = """
SELECT chunk.chunk_id FROM ({walk}) AS near, LATERAL (
    SELECT part.id AS chunk_id FROM knowledge_chunk AS part
        JOIN knowledge_chunkvector AS vector ON vector.chunk_id = part.id AND model = %(model)s
    WHERE part.{kind}_id = near.id ORDER BY {distance} LIMIT 1
) AS chunk
"""
FIND = """
SELECT DISTINCT near.chunk_id
FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL ({chunks}) AS near (chunk_id)
"""
ALONE = """
SELECT id FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL ({walk}) AS near
ORDER BY distance
"""

Vectors = NDArray[np.float32]


def find(vectors: Vectors, model: str, scope: Scope) -> list[int]:
    """Return the ids of the chunks that lie near one of the vectors, by themselves or as part.

    `vectors`, (wordings, dimensions), are the model's. Must run inside a transaction.
    """
    exact = is_small(scope)
    statements = []
    for kind in LIMITS:
        walk = nearest(kind, vectors.shape[1], scope, exact=exact)
        shown = CHUNK if kind == "chunk" else CHUNK_OF
        chunks = shown.format(walk=walk, kind=kind, distance=distance(vectors.shape[1]))
        statements += [SETTINGS.format(around=AROUND[kind]), FIND.format(chunks=chunks)]
    found: set[int] = set()
    with connection.cursor() as cursor:
        # All in one go.
        cursor.execute(
            ";".join(statements),
            scope.values
            | {"vectors": texts(vectors), "model": model, "of_model": scope.models[model]},
        )
        for _ in LIMITS:
            cursor.nextset()
            found.update(chunk for (chunk,) in cursor.fetchall())
            cursor.nextset()
    return sorted(found)


def alone(
    kind: Kind, vectors: Vectors, model: str, scope: Scope, *, exact: bool = False
) -> list[int | str]:
    """Return the ids of the chunks, sections or documents nearest to the first vector, in order.

    For measuring what the index finds beside what an `exact` comparison does. Must run inside a
    transaction.
    """
    walk = nearest(kind, vectors.shape[1], scope, exact=exact)
    values = {"vectors": texts(vectors[:1]), "model": model, "of_model": scope.models[model]}
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS.format(around=AROUND[kind]))
        cursor.execute(ALONE.format(walk=walk), scope.values | values)
        return [each for (each,) in cursor.fetchall()]


def nearest(kind: Kind, dimensions: int, scope: Scope, *, exact: bool) -> str:
    """Return the statement for the nearest of a kind; an exact one leaves the index alone."""
    by = distance(dimensions)
    order, coarse = by, LIMITS[kind]
    if exact:
        order = f"({by}) + 0"
    elif dimensions > indexes.LONGEST:
        order = f"{indexes.signs(dimensions)} <~> {indexes.signs(dimensions, 'asked.vector')}"
        coarse *= COARSE
    condition = CONDITION[kind].format(condition=scope.condition) if scope.condition else ""
    return NEAREST.format(
        kind=kind, distance=by, order=order, coarse=coarse, limit=LIMITS[kind], condition=condition
    )


def distance(dimensions: int) -> str:
    """Return the cosine distance to `asked.vector`; the cast is what the index is made over."""
    return f"embedding::halfvec({dimensions}) <=> asked.vector"


def is_small(scope: Scope) -> bool:
    """Whether comparing with everything in scope is faster than walking through the index."""
    return scope.chunks <= EXACTLY or scope.chunks**2 <= WALK * scope.stored


def texts(vectors: Vectors) -> list[str]:
    """Return the vectors as PostgreSQL reads them, at half precision and a little more."""
    form = "[" + ",".join(["%.6f"] * vectors.shape[1]) + "]"
    return [form % tuple(vector) for vector in vectors.tolist()]


def ids(numbers: Sequence[int]) -> str:
    """Return the numbers as PostgreSQL reads an array: ten times faster than as a parameter."""
    return "{" + ",".join(map(str, numbers)) + "}"
