"""Stored: a made-up corpus in the tables that search reads, by COPY and without ingestion."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from knowledge import postings
from knowledge.bench.corpus import PER_DOCUMENT, PER_SECTION, Corpus, unit
from knowledge.models import Collection, Document, document_id
from knowledge.names import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.search import indexes

SHA1 = "0" * 40
MOST = 100_000_000  # rows of one corpus


def store(corpus: Corpus, name: str) -> Collection:
    """Write the corpus as a collection; sections and documents lie at the mean of their chunks."""
    collection = Collection.objects.create(name=name)
    indexes.drop(LOCAL_MODEL)  # row by row they would take an hour
    documents = -(-len(corpus.texts) // PER_DOCUMENT)
    sections = -(-len(corpus.texts) // PER_SECTION)
    ids = [document_id(name, f"{number}.md") for number in range(documents)]
    Document.objects.bulk_create(
        (
            Document(
                id=each,
                collection=collection,
                source=f"{number}.md",
                origin=f"{name}/{number}.md",
                title=f"Page {number}",
                sha1=SHA1,
            )
            for number, each in enumerate(ids)
        ),
        batch_size=2000,
    )
    first_section, first_chunk = first("section"), first("chunk")
    copy(
        "section (id, document_id, number, path)",
        (
            (first_section + place, ids[place * PER_SECTION // PER_DOCUMENT], place, "[]")
            for place in range(sections)
        ),
    )
    copy(
        "chunk (id, document_id, section_id, number, text, keywords, sha1, tokens)",
        (
            (first_chunk + place, ids[place // PER_DOCUMENT], first_section + place // PER_SECTION,
             place + 1, text, "[]", SHA1, 250)
            for place, text in enumerate(corpus.texts)
        ),
    )  # fmt: skip
    vectors("chunk", "int8", count(first_chunk), corpus.vectors, collection)
    vectors("section", "int8", count(first_section), means(corpus, PER_SECTION), collection)
    vectors("document", "text", ids, means(corpus, PER_DOCUMENT), collection)
    settle()
    return collection


def first(table: str) -> int:
    """Return an id from which on all are free, and move the sequence far beyond."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s)", [f"knowledge_{table}_id_seq"])
        free = int(cursor.fetchone()[0])
        cursor.execute("SELECT setval(%s, %s)", [f"knowledge_{table}_id_seq", free + MOST])
    return free


def copy(target: str, rows: Iterable[Sequence[Any]], types: Sequence[str] = ()) -> None:
    """Fill the table; in binary when the types of its columns are given."""
    connection.ensure_connection()
    format_ = " (FORMAT binary)" if types else ""
    with (
        connection.connection.cursor() as cursor,
        cursor.copy(f"COPY knowledge_{target} FROM STDIN{format_}") as stream,
    ):
        if types:
            stream.set_types(types)
        for row in rows:
            stream.write_row(row)


def vectors(
    kind: str,
    key: str,
    ids: Iterable[int] | Iterable[str],
    rows: NDArray[np.float32],
    collection: Collection,
) -> None:
    """Fill a table of vectors."""
    connection.ensure_connection()
    register_vector(connection.connection)
    copy(
        f"{kind}vector ({kind}_id, collection_id, model, embedding)",
        (
            (each, collection.pk, LOCAL_MODEL, HalfVector(row))
            for each, row in zip(ids, rows, strict=False)
        ),
        (key, "int8", "text", "halfvec"),
    )


def means(corpus: Corpus, group: int) -> NDArray[np.float32]:
    """Return the unit vector in the direction of the mean of every `group` chunks."""
    return unit(np.add.reduceat(corpus.vectors, np.arange(0, len(corpus.texts), group), axis=0))


def settle() -> None:
    """Write the postings, index the vectors, and let the planner know what there is."""
    postings.rebuild()
    indexes.ensure(LOCAL_MODEL, LOCAL_DIMENSIONS)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
