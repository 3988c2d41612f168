"""Vector indexes: those of each embedding model, made and dropped while searches go on."""

from hashlib import blake2b
from typing import Literal

from django.db import connection

from knowledge.identifiers import LOCAL_MODEL
from knowledge.models.search_tables import EF_CONSTRUCTION
from knowledge.search.sql import text_literal

# What is looked for by where it lies. Sections only weigh chunks that something else named.
IndexKind = Literal["chunk", "document"]
INDEX_KINDS: tuple[IndexKind, ...] = ("chunk", "document")

LOCK = 0x0D0CE28  # held by whoever makes indexes
# What pgvector's HNSW takes of half-precision floats; longer vectors are indexed by their signs.
LONGEST = 4000


def name(kind: IndexKind, model: str) -> str:
    """Return the name of the index."""
    # The local model's come with the tables.
    digest = blake2b(model.encode(), digest_size=8).hexdigest()
    return f"{kind}_by_cosine_{'minilm' if model == LOCAL_MODEL else digest}"


def ensure(model: str, dimensions: int) -> None:
    """Create the indexes of the model unless they are there; takes minutes when large.

    Outside a transaction. Nobody who reads or writes waits for it, and when another process is at
    it, this one doesn't: to wait for a lock would make the other wait for us.
    """
    missing = [kind for kind in INDEX_KINDS if not is_valid(name(kind, model))]
    if not missing or not query_bool("SELECT pg_try_advisory_lock(%s)", LOCK):
        return
    try:
        for kind in missing:
            create(kind, model, dimensions)
    finally:
        query_bool("SELECT pg_advisory_unlock(%s)", LOCK)


def create(kind: IndexKind, model: str, dimensions: int) -> None:
    """Create one index, in place of what an interrupted attempt left, which is of no use."""
    index = name(kind, model)
    execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}")
    execute(
        f"CREATE INDEX CONCURRENTLY {index} ON knowledge_{kind}vector USING hnsw "
        f"({expression(dimensions)}) WITH (ef_construction = {EF_CONSTRUCTION}) "
        f"WHERE model = {text_literal(model)}"
    )


def drop(model: str) -> None:
    """Drop the indexes of the model, if they are there. Outside a transaction."""
    for kind in INDEX_KINDS:
        execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name(kind, model)}")


def expression(dimensions: int) -> str:
    """Return what is indexed and how; queries must order by the same expression."""
    if dimensions <= LONGEST:
        return f"(embedding::halfvec({dimensions})) halfvec_cosine_ops"
    return f"{signs(dimensions)} bit_hamming_ops"


def signs(dimensions: int, vector: str = "embedding") -> str:
    """Return the expression for the signs of a long vector."""
    return f"(binary_quantize({vector}::halfvec({dimensions}))::bit({dimensions}))"


def is_valid(index: str) -> bool:
    """Whether there is such an index, complete."""
    return query_bool("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", index)


def query_bool(question: str, about: str | int) -> bool:
    """Return what the database says to a question of one parameter; no row is a no."""
    with connection.cursor() as cursor:
        cursor.execute(question, [about])
        row = cursor.fetchone()
    return bool(row and row[0])


def execute(statement: str) -> None:
    """Run one statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
