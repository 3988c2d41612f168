"""Search after a deletion: what is left is found before any vacuum has been."""

from collections.abc import Iterator

import numpy as np
import pytest
from django.db import connection
from pgvector import HalfVector

from knowledge.ingestion import removal
from knowledge.models import Chunk, ChunkVector, Collection, Document, Section, document_id
from knowledge.search import postings, sql, vector, vector_indexes
from knowledge.search.scope import scope_of
from tests.knowledge.levels import OTHER, towards

pytestmark = pytest.mark.django_db(transaction=True)

DIMENSIONS = 8
MANY, FEW = 2990, 10
# Towards the many, so that all of them lie on the way to the few.
QUESTION = towards(1, dimensions=DIMENSIONS)[np.newaxis]


@pytest.fixture
def rest() -> Iterator[Document]:
    """The document that is left of two, with a few of all the vectors there were."""
    sea = Collection.objects.create(name="sea", embedding_model=OTHER)
    deleted, left = filled(sea, "a", MANY, axis=0), filled(sea, "b", FEW, axis=1)
    vector_indexes.ensure(OTHER, DIMENSIONS)
    postings.refresh(sea.pk)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE knowledge_chunkvector")
    removal.delete([deleted])
    yield left
    vector_indexes.drop(OTHER)


def filled(sea: Collection, source: str, count: int, *, axis: int) -> Document:
    """A document of so many chunks, whose vectors lie about an axis."""
    document = Document.objects.create(
        id=document_id("sea", source), collection=sea, source=source, title=""
    )
    section = Section.objects.create(document=document, number=1, path=[])
    chunks = Chunk.objects.bulk_create(
        Chunk(document=document, section=section, number=number, text="whale", tokens=1)
        for number in range(1, count + 1)
    )
    vectors = np.random.default_rng(axis).normal(scale=0.3, size=(count, DIMENSIONS))
    vectors[:, axis] += 1
    ChunkVector.objects.bulk_create(
        ChunkVector(chunk=chunk, collection=sea, model=OTHER, embedding=HalfVector(vector))
        for chunk, vector in zip(chunks, vectors, strict=True)
    )
    postings.write(document)
    return document


def walked() -> list[int | str]:
    return vector.nearest_alone("chunk", QUESTION, OTHER, scope_of([]))


def test_a_walk_among_deleted_vectors_goes_on_to_those_that_are_left(
    rest: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {*walked()} == {*rest.chunks.values_list("pk", flat=True)}
    monkeypatch.setattr(sql, "FARTHEST", "1000")
    assert len(walked()) < FEW  # the way is as long as it is meant to be


def test_a_search_knows_at_once_that_little_is_left(rest: Document) -> None:
    scope = scope_of([])
    assert (scope.chunks, scope.stored, vector.is_small(scope)) == (FEW, FEW, True)
