"""Writing: the sections, chunks and vectors of a document."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge import enrichment, graph, postings
from knowledge.embedding import count_tokens
from knowledge.ingestion.drafts import Draft
from knowledge.models import (
    Chunk,
    ChunkVector,
    Document,
    DocumentVector,
    Section,
    SectionVector,
)


def write_chunks(document: Document, draft: Draft, vectors: NDArray[np.float32]) -> None:
    """Insert the chunks and their vectors."""
    headings = enrichment.headings(document.content)
    candidates = [
        *document.keywords,
        *enrichment.words(" ".join([document.title, *headings, document.summary])),
    ]
    sections = write_sections(document, draft)
    chunks = Chunk.objects.bulk_create(
        Chunk(
            document=document,
            number=number,
            section=sections[part.section],
            text=part.text,
            page=part.page,
            keywords=enrichment.chunk_keywords(part.text, part.section, candidates),
            sha1=part.sha1,
            tokens=count_tokens(text),
        )
        for number, (part, text) in enumerate(
            zip(draft.parts, draft.embedded(), strict=True), start=1
        )
    )
    write_vectors(document, chunks, vectors)
    postings.write(document)
    graph.write(document, chunks, draft.graph)


def write_sections(document: Document, draft: Draft) -> dict[tuple[str, ...], Section]:
    """Insert a section per heading path, in the order of the text; return them by path."""
    paths = dict.fromkeys(part.section for part in draft.parts)
    made = Section.objects.bulk_create(
        Section(document=document, number=number, path=list(path))
        for number, path in enumerate(paths, start=1)
    )
    return dict(zip(paths, made, strict=True))


def write_vectors(
    document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]
) -> None:
    """Insert the vectors of the chunks; a section and the document lie at the mean of theirs."""
    place = {"collection": document.collection, "model": document.collection.embedding_model}
    ChunkVector.objects.bulk_create(
        ChunkVector(chunk=chunk, embedding=HalfVector(vector), **place)
        for chunk, vector in zip(chunks, vectors, strict=True)
    )
    of_section: dict[int, list[int]] = {}
    for row, chunk in enumerate(chunks):
        of_section.setdefault(chunk.section_id, []).append(row)
    SectionVector.objects.bulk_create(
        SectionVector(section_id=section, embedding=mean(vectors[rows]), **place)
        for section, rows in of_section.items()
    )
    DocumentVector.objects.create(document=document, embedding=mean(vectors), **place)


def mean(vectors: NDArray[np.float32]) -> HalfVector:
    """Return the unit vector in the direction of the mean."""
    centre = vectors.mean(axis=0)
    return HalfVector(centre / (np.linalg.norm(centre) or 1.0))
