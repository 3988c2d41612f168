"""The bench of search: a made-up collection, found by the same statements as a real one."""

import numpy as np
import pytest

from assistant.lab import bench_search, corpus
from assistant.lab.rival import NotComparable, hybrid_search
from knowledge.models import Chunk, ChunkVector, Document, DocumentVector, Section, SectionVector

pytestmark = pytest.mark.django_db(transaction=True)


def silent(text: str) -> None:
    """Say nothing."""


def test_the_same_number_makes_the_same_corpus() -> None:
    first, again = corpus.make(25), corpus.make(25)
    assert first.texts == again.texts
    assert np.array_equal(first.vectors, again.vectors)
    assert np.linalg.norm(first.vectors, axis=1) == pytest.approx(np.ones(25), abs=1e-5)
    assert all(len(text.split()) == corpus.WORDS for text in first.texts)


def test_chunks_of_one_document_lie_closer_together_than_of_two() -> None:
    vectors = corpus.make(200).vectors
    own = vectors[0] @ vectors[1 : corpus.PER_DOCUMENT].T
    others = vectors[0] @ vectors[corpus.PER_DOCUMENT :].T
    assert own.min() > others.mean() + 0.2


def test_figures_of_a_small_collection() -> None:
    figures = bench_search.measure(45, silent)
    assert figures["chunks"] == 45
    assert figures["levels"].keys() == {"keyword", "semantic", "summary"}
    assert figures["recall"] == {"chunk": 1.0, "document": 1.0}
    assert 0 < figures["fused"]["p50"] <= figures["fused"]["p95"]
    assert figures["fused"]["found"] > 0.9
    assert figures["postings_bytes_per_chunk"] > 0
    assert (Document.objects.count(), DocumentVector.objects.count()) == (5, 5)
    assert (Section.objects.count(), SectionVector.objects.count()) == (23, 23)
    assert (Chunk.objects.count(), ChunkVector.objects.count()) == (45, 45)
    with pytest.raises(NotComparable, match="nowhere/python cannot run the comparison"):
        hybrid_search("nowhere/python", "bench-search", corpus.questions(corpus.make(10), 1))
