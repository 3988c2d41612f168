"""Backfill: gives a collection the vectors of an embedding model, beside those it has.

Only what is missing is made, batch by batch, so it may be interrupted at any time and go on from
there, and documents that come meanwhile are found by the next round. Nothing is locked and no
transaction is open while the model works.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from pgvector import HalfVector

from knowledge import chunking
from knowledge.embedding import Embedder, Vectors
from knowledge.ingestion.store import lock_collection
from knowledge.models import Chunk, Collection, Document

CHUNKS_AT_ONCE = 64  # about two seconds' work of this machine
DOCUMENTS_AT_ONCE = 200

Watch = Callable[[int, int], None]  # told how many chunks are filled, of how many

# A chunk that was deleted while the model worked is left out, and one that is about to be is kept
# until its vector can be deleted with it.
INSERT = """
INSERT INTO knowledge_chunkvector (chunk_id, collection_id, model, embedding)
SELECT chunk.id, %(collection)s, %(model)s, made.embedding::halfvec
FROM unnest(%(chunks)s::bigint[], %(vectors)s::text[]) AS made (chunk, embedding)
    JOIN knowledge_chunk AS chunk ON chunk.id = made.chunk
FOR KEY SHARE OF chunk
ON CONFLICT DO NOTHING
"""
# A section and a document lie at the mean of their chunks.
MEANS = """
INSERT INTO knowledge_{kind}vector ({kind}_id, collection_id, model, embedding)
SELECT chunk.{kind}_id, %(collection)s, %(model)s,
    l2_normalize(avg(vector.embedding::vector))::halfvec
FROM knowledge_chunk AS chunk
    LEFT JOIN knowledge_chunkvector AS vector
        ON vector.chunk_id = chunk.id AND vector.model = %(model)s
WHERE chunk.document_id = ANY(%(documents)s)
GROUP BY chunk.{kind}_id HAVING count(*) = count(vector.id)
ON CONFLICT DO NOTHING
"""
WHOLES = ("section", "document")


def fill(collection: Collection, embedder: Embedder, watch: Watch | None = None) -> int:
    """Give every chunk, section and document its vector; return how many chunks lacked one.

    Raises EmbeddingUnavailable; what was filled stays.
    """
    lacking = missing(collection, embedder.name)
    filled, total = 0, lacking.count()
    for batch in batches(lacking):
        insert(collection, embedder.name, batch, embedder.encode([text(chunk) for chunk in batch]))
        filled += len(batch)
        if watch:
            watch(filled, total)
    for documents in unfinished(collection, embedder.name):
        insert_means(collection, embedder.name, documents)
    return filled


def missing(collection: Collection, model: str) -> QuerySet[Chunk]:
    """Return the chunks without a vector of the model, in order."""
    chunks = Chunk.objects.filter(document__collection=collection).exclude(vectors__model=model)
    return (
        chunks.order_by("pk")
        .select_related("document", "section")
        .only("text", "tokens", "document__title", "section__path")
    )


def is_whole(collection: Collection, model: str) -> bool:
    """Whether nothing lacks a vector of the model."""
    return not missing(collection, model).exists() and not any(unfinished(collection, model))


def batches(chunks: QuerySet[Chunk]) -> Iterator[list[Chunk]]:
    """Yield the chunks, a batch at a time, each asked for when the one before it is done."""
    last = 0
    while batch := list(chunks.filter(pk__gt=last)[:CHUNKS_AT_ONCE]):
        last = batch[-1].pk
        yield batch


def text(chunk: Chunk) -> str:
    """Return what the model is to see of a chunk."""
    return chunking.embedding_text(chunk.document.title, tuple(chunk.section.path), chunk.text)


def insert(collection: Collection, model: str, chunks: Sequence[Chunk], vectors: Vectors) -> None:
    """Store the vectors of those chunks that still are."""
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT,
            {
                "collection": collection.pk,
                "model": model,
                "chunks": [chunk.pk for chunk in chunks],
                "vectors": [HalfVector(vector).to_text() for vector in vectors],
            },
        )


def unfinished(collection: Collection, model: str) -> Iterator[list[str]]:
    """Yield ids of documents that have chunks but no vector of their own, a batch at a time."""
    documents = collection.documents.exclude(vectors__model=model).exclude(chunks=None)
    last = ""
    ids = documents.order_by("pk").values_list("pk", flat=True)
    while batch := list(ids.filter(pk__gt=last)[:DOCUMENTS_AT_ONCE]):
        last = batch[-1]
        yield batch


def insert_means(collection: Collection, model: str, documents: Sequence[str]) -> None:
    """Store the vectors of documents and their sections, of those that still are."""
    with transaction.atomic(), connection.cursor() as cursor:
        lock_collection(collection)
        still = Document.objects.filter(pk__in=documents).values_list("pk", flat=True)
        values: dict[str, Any] = {
            "collection": collection.pk,
            "model": model,
            "documents": [*still],
        }
        for kind in WHOLES:
            cursor.execute(MEANS.format(kind=kind), values)
