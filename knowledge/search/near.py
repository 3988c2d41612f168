"""Near: the levels that look for vectors — chunks and documents near the question."""

import numpy as np
from numpy.typing import NDArray

from knowledge.search import indexes
from knowledge.search.indexes import Kind
from knowledge.search.scope import Scope
from knowledge.search.statements import Asked, array, together

# How many of each a walk finds.
LIMITS: dict[Kind, int] = {"chunk": 30, "document": 10}
# What names its nearest chunk when it is near itself. Sections would take longest to walk through,
# and on two judged collections they named nothing that counts: where a section is near, so is one
# of its chunks, or its document.
WHOLES: tuple[Kind, ...] = ("document",)
# Signs alone order vectors coarsely: this many times as many are compared in full.
COARSE = 4
# An exact comparison takes 1 µs; a walk through the index takes as long as 900 of them, longer in
# proportion when only one in so many of the vectors on its way is in scope. They cost the same
# where the scope is about the square root of 900 times all there is.
EXACTLY, WALK = 1000, 900

# What the largest number of a vector becomes, of the 65504 that half precision holds.
LONG = 30_000

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
    "document": """
        AND (SELECT {condition} FROM knowledge_document AS document
            WHERE document.id = vector.document_id)""",
}
# Mostly the nearest chunk of what is near is among the nearest chunks itself.
CHUNK_OF = """
SELECT nearest.id FROM ({walk}) AS near, LATERAL (
    SELECT part.id FROM knowledge_chunk AS part
        JOIN knowledge_chunkvector AS vector ON vector.chunk_id = part.id AND model = %(model)s
    WHERE part.{kind}_id = near.id ORDER BY {distance} LIMIT 1
) AS nearest WHERE NOT EXISTS (SELECT FROM chunk WHERE chunk.{kind}_id = near.id)
"""
FIND = """
SELECT DISTINCT near.id FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL (
    WITH chunk AS MATERIALIZED (
        SELECT part.id, part.document_id
        FROM ({walk}) AS near JOIN knowledge_chunk AS part ON part.id = near.id
    )
    SELECT id FROM chunk{others}
) AS near
"""
ALONE = """
SELECT id FROM unnest(%(vectors)s::text[]::halfvec[]) AS asked (vector), LATERAL ({walk}) AS near
ORDER BY distance
"""

Vectors = NDArray[np.float32]


def ask(vectors: Vectors, sent: list[str], model: str, scope: Scope) -> Asked:
    """Ask for the ids of the chunks near one of the vectors, by themselves or as part of something.

    `vectors`, (wordings, dimensions), are the model's, `sent` the same as `texts` gives them.
    """
    exact = is_small(scope)
    others = [
        CHUNK_OF.format(
            walk=nearest(kind, vectors, model, scope, exact=exact),
            kind=kind,
            distance=distance(vectors),
        )
        for kind in WHOLES
    ]
    statement = FIND.format(
        walk=nearest("chunk", vectors, model, scope, exact=exact),
        others="".join(f" UNION ALL ({each})" for each in others),
    )
    return Asked(statement, scope.values | {"vectors": sent, "model": model})


def alone(
    kind: Kind, vectors: Vectors, model: str, scope: Scope, *, exact: bool = False
) -> list[int | str]:
    """Return the ids of the chunks or documents nearest to the first vector, in order.

    For measuring what the index finds beside what an `exact` comparison does.
    """
    walk = nearest(kind, vectors, model, scope, exact=exact)
    values = {"vectors": texts(vectors[:1])}
    with together():
        asked = Asked(ALONE.format(walk=walk), scope.values | values)
    return [each for (each,) in asked.rows()]


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
    """Return the vectors as PostgreSQL reads them, at half precision.

    Longer, because whole numbers are written and read faster and only directions are compared.
    """
    longest = np.abs(vectors).max(axis=1, keepdims=True)
    whole = np.rint(vectors * (LONG / np.where(longest > 0, longest, 1.0))).astype(int)
    return [str(vector) for vector in whole.tolist()]
