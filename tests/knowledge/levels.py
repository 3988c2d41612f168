"""Levels: documents whose words and vectors are known, and what is found of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge.identifiers import LOCAL_MODEL
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    Document,
    DocumentVector,
    Section,
    SectionVector,
    document_id,
)
from knowledge.search import SearchResult, postings, search_with_vectors
from knowledge.search.explanation import ConsideredChunk, Wording
from knowledge.search.scope import Scope, scope_of

DIMENSIONS = 384
OTHER = "other@own"

Vectors = NDArray[np.float32]


def towards(*parts: float, dimensions: int = DIMENSIONS) -> Vectors:
    """Return the unit vector with these first coordinates."""
    vector = np.zeros(dimensions, dtype=np.float32)
    vector[: len(parts)] = parts
    return vector / np.linalg.norm(vector)


def page(
    source: str,
    *chunks: tuple[str, Vectors],
    collection: str = "sea",
    model: str = LOCAL_MODEL,
    sections: Sequence[Sequence[str]] = (),
    **fields: object,
) -> Document:
    """Return a document of chunks, each in a section of its own unless `sections` are shared."""
    home, _ = Collection.objects.get_or_create(name=collection, defaults={"embedding_model": model})
    place = {"collection": home, "model": model}
    values = {"id": document_id(collection, source), "title": "", "source": source, **fields}
    document = Document.objects.create(collection=home, **values)
    made: dict[tuple[str, ...], Section] = {}
    paths = [tuple(path) for path in sections] or [(f"{n}",) for n in range(len(chunks))]
    for number, ((text, vector), path) in enumerate(zip(chunks, paths, strict=True), start=1):
        if path not in made:
            made[path] = Section.objects.create(document=document, number=number, path=list(path))
            SectionVector.objects.create(section=made[path], embedding=HalfVector(vector), **place)
        chunk = Chunk.objects.create(
            document=document, section=made[path], number=number, text=text, tokens=1
        )
        ChunkVector.objects.create(chunk=chunk, embedding=HalfVector(vector), **place)
    mean = np.mean([vector for _, vector in chunks], axis=0)
    DocumentVector.objects.create(document=document, embedding=HalfVector(mean), **place)
    postings.write(document)
    postings.refresh(home.pk)
    return document


def ask(
    text: str = "",
    vector: Vectors | None = None,
    *,
    where: Scope | None = None,
    limit: int = 8,
    reads: bool = False,
    explain: bool = False,
) -> SearchResult:
    """Return what is found for a text and the local model's vector."""
    vectors = {} if vector is None else {LOCAL_MODEL: vector[np.newaxis]}
    return search_with_vectors(
        [Wording(text, "question", 1.0)],
        vectors,
        where or scope_of([]),
        limit=limit,
        reads=reads,
        explain=explain,
        milliseconds={},
    )


def texts(result: SearchResult) -> list[str]:
    return [passage.text for passage in result.passages]


def reasons(result: SearchResult) -> dict[str, ConsideredChunk]:
    assert result.explain
    return {each.text: each for each in result.explain.candidates}
