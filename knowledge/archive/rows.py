"""Rows: one document of an archive into the database, whole or not at all."""

import numpy as np
from django.db import transaction
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge import changes, chunking, graph, postings
from knowledge.archive.contents import Entry, Matrices
from knowledge.archive.records import Described, DocumentRecord
from knowledge.archive.statements import restate
from knowledge.embedding import Embedder
from knowledge.ingestion.storing import at, free_id, take_turns
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    Copy,
    Document,
    DocumentVector,
    Section,
    SectionVector,
    Version,
)


def put(collection: Collection, entry: Entry) -> None:
    """Write a document with all that belongs to it, in place of one of the same source."""
    record = entry.document
    with transaction.atomic():
        take_turns(collection)
        former = at(collection, record.source)
        # Answers cite it by its id.
        identity = former.pk if former else free_id(collection, record.source)
        before = graph.touched([identity])
        if former:
            former.delete()
            changes.tell([identity])
        sources = [record.source, *(copy.source for copy in record.copies)]
        collection.copies.filter(source__in=sources).delete()
        document = Document.objects.create(
            id=identity,
            collection=collection,
            **{name: getattr(record, name) for name in Described.model_fields},
        )
        put_history(document, entry)
        sections = Section.objects.bulk_create(
            Section(document=document, **each.model_dump()) for each in record.sections
        )
        by_number = {section.number: section for section in sections}
        chunks = Chunk.objects.bulk_create(
            Chunk(
                document=document,
                section=by_number[each.section],
                **each.model_dump(exclude={"section"}),
            )
            for each in record.chunks
        )
        for model, vectors in entry.vectors.items():
            put_vectors(document, sections, chunks, model, vectors)
        restate(document, chunks, record)
        graph.prune(before)
        postings.write(document)


def put_history(document: Document, entry: Entry) -> None:
    """Insert what the document said before, and where else it lies."""
    Version.objects.bulk_create(
        Version(document=document, **each.model_dump(exclude={"document"}))
        for each in entry.versions
    )
    Copy.objects.bulk_create(
        Copy(document=document, collection=document.collection, **each.model_dump())
        for each in entry.document.copies
    )


def put_vectors(
    document: Document,
    sections: list[Section],
    chunks: list[Chunk],
    model: str,
    vectors: Matrices,
) -> None:
    """Insert the vectors of one model."""
    place = {"collection": document.collection, "model": model}
    DocumentVector.objects.create(
        document=document, embedding=HalfVector(vectors["documents"][0]), **place
    )
    SectionVector.objects.bulk_create(
        SectionVector(section=section, embedding=HalfVector(vector), **place)
        for section, vector in zip(sections, vectors["sections"], strict=True)
    )
    ChunkVector.objects.bulk_create(
        ChunkVector(chunk=chunk, embedding=HalfVector(vector), **place)
        for chunk, vector in zip(chunks, vectors["chunks"], strict=True)
    )


def embedded(record: DocumentRecord, embedder: Embedder) -> Matrices:
    """Return vectors of a document that came without. Raises EmbeddingUnavailable."""
    paths = {section.number: section.path for section in record.sections}
    texts = [
        chunking.embedded(record.title, paths[chunk.section], chunk.text) for chunk in record.chunks
    ]
    chunks = embedder.encode(texts)
    everything = list(range(len(chunks)))
    within = [
        [row for row, chunk in enumerate(record.chunks) if chunk.section == section.number]
        or everything  # a section that is all heading
        for section in record.sections
    ]
    return {
        "documents": means(chunks, [everything]),
        "sections": means(chunks, within),
        "chunks": chunks.astype(np.float16),
    }


def means(vectors: NDArray[np.float32], groups: list[list[int]]) -> NDArray[np.float16]:
    """Return the unit vector in the direction of the mean of each group of rows."""
    centres = np.stack([vectors[rows].mean(axis=0) for rows in groups])
    lengths = np.linalg.norm(centres, axis=1, keepdims=True)
    return (centres / np.where(lengths > 0, lengths, 1.0)).astype(np.float16)
