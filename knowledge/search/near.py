"""Near: the levels that compare vectors — chunks, sections and documents near the question."""

import numpy as np
from numpy.typing import NDArray

from knowledge.search import indexes
from knowledge.search.indexes import Kind
from knowledge.search.scope import Scope
from knowledge.search.statements import array, rows, settle

# How many of each a level names. A section and a document stand for their nearest chunk.
LIMITS: dict[Kind, int] = {"chunk": 40, "section": 15, "document": 10}
# Signs alone order vectors coarsely: this many times as many are compared in full.
COARSE = 4
# An exact comparison takes 1 µs; a walk through the index takes as long as 900 of them, longer in
# proportion when only one in so many of the vectors on its way is in scope. They cost the same
# where the scope is about the square root of 900 times all there is.
EXACTLY, WALK = 1000, 900

# Model and collections are written into the text: a plan that is kept for any could not use the
# model's partial index, and would not know how many vectors are in scope.
NEAREST = """
SELECT {kind}_id AS id, distance FROM (
    SELECT {kind}_id, {distance} AS distance FROM knowledge_{kind}vector AS vector
    WHERE model = {model} AND collection_id = ANY('{collections}'){condition}
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
CHUNK_OF = """
SELECT chunk.chunk_id FROM ({walk}) AS near, LATERAL (
    SELECT part.id AS chunk_id FROM knowledge_chunk AS part
        JOIN knowledge_chunkvector AS vector ON vector.chunk_id = part.id AND model = %(model)s
    WHERE part.{kind}_id = near.id ORDER BY {distance} LIMIT 1
) AS chunk
"""
FIND = """
SELECT DISTINCT near.chunk_id
FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL (
    SELECT id AS chunk_id FROM ({chunk}) AS near
    UNION ALL ({section})
    UNION ALL ({document})
) AS near
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
    walks = {kind: nearest(kind, vectors, model, scope, exact=exact) for kind in LIMITS}
    for kind in ("section", "document"):
        walks[kind] = CHUNK_OF.format(walk=walks[kind], kind=kind, distance=distance(vectors))
    values = {"vectors": texts(vectors), "model": model}
    return [chunk for (chunk,) in rows(FIND.format(**walks), scope.values | values)]


def alone(
    kind: Kind, vectors: Vectors, model: str, scope: Scope, *, exact: bool = False
) -> list[int | str]:
    """Return the ids of the chunks, sections or documents nearest to the first vector, in order.

    For measuring what the index finds beside what an `exact` comparison does. Must run inside a
    transaction.
    """
    walk = nearest(kind, vectors, model, scope, exact=exact)
    settle()
    values = {"vectors": texts(vectors[:1])}
    return [each for (each,) in rows(ALONE.format(walk=walk), scope.values | values)]


def nearest(kind: Kind, vectors: Vectors, model: str, scope: Scope, *, exact: bool) -> str:
    """Return the statement for the nearest of a kind; an exact one leaves the index alone."""
    dimensions, by = vectors.shape[1], distance(vectors)
    order, coarse = by, LIMITS[kind]
    if exact:
        order = f"({by}) + 0"
    elif dimensions > indexes.LONGEST:
        order = f"{indexes.signs(dimensions)} <~> {indexes.signs(dimensions, 'asked.vector')}"
        coarse *= COARSE
    condition = CONDITION[kind].format(condition=scope.condition) if scope.condition else ""
    return NEAREST.format(
        kind=kind,
        model=indexes.literal(model).replace("%", "%%"),
        collections=array(scope.models[model]),
        distance=by,
        order=order,
        coarse=coarse,
        limit=LIMITS[kind],
        condition=condition,
    )


def distance(vectors: Vectors) -> str:
    """Return the cosine distance to `asked.vector`; the cast is what the index is made over."""
    return f"embedding::halfvec({vectors.shape[1]}) <=> asked.vector"


def is_small(scope: Scope) -> bool:
    """Whether comparing with everything in scope is faster than walking through the index."""
    return scope.chunks <= EXACTLY or scope.chunks**2 <= WALK * scope.stored


def texts(vectors: Vectors) -> list[str]:
    """Return the vectors as PostgreSQL reads them, at half precision and a little more."""
    form = "[" + ",".join(["%.6f"] * vectors.shape[1]) + "]"
    return [form % tuple(vector) for vector in vectors.tolist()]
