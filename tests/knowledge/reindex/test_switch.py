"""Reindexing: a collection gets another embedding model, if that finds no less, and goes back."""

from pathlib import Path

import numpy as np
import pytest
from werkzeug import Response

from knowledge import embedding, ingestion, reindex
from knowledge.embedding import registry
from knowledge.embedding.embedder import Unreachable
from knowledge.embedding.local import MULTILINGUAL
from knowledge.ingestion import backfill, find
from knowledge.models import Chunk, ChunkVector, Collection, GoldenQuestion
from knowledge.search import search, vector_indexes
from tests.knowledge.endpoint import Server
from tests.knowledge.polyglot import Polyglot
from tests.knowledge.words import DIMENSIONS, OTHER, model_of, of_words, vectors

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("one_document_counts"),
]


def of_nothing(text: str) -> list[float]:
    """The same for every text, so that nothing can be told from anything."""
    return [1.0] * DIMENSIONS


def source(part: str) -> str:
    return str(Chunk.objects.filter(document__source__contains=part)[0].document.source)


def test_collection_is_searched_by_the_new_vectors_and_keeps_the_old(
    collection: Collection, server: Server
) -> None:
    progress: list[tuple[int, int]] = []
    outcome = reindex.reindex(collection, OTHER, watch=lambda *step: progress.append(step))
    chunks = Chunk.objects.count()
    assert (outcome.before, outcome.after, outcome.filled) == (embedding.MODEL, OTHER, chunks)
    assert progress[-1] == (chunks, chunks)
    assert model_of(collection) == OTHER
    assert vectors(OTHER) == vectors(embedding.MODEL)
    assert all(
        vector_indexes.is_valid(vector_indexes.name(kind, OTHER))
        for kind in vector_indexes.INDEX_KINDS
    )
    found = search("How is the foghorn sounded?", collections=["island"])
    assert found.error == ""
    assert "How is the foghorn sounded?" in server.texts
    assert "foghorn" in found.passages[0].text
    assert found.passages[0].cosine is not None


def test_vectors_are_of_the_headings_and_the_text_and_sections_lie_at_their_mean(
    collection: Collection,
) -> None:
    reindex.reindex(collection, OTHER)
    (chunk,) = Chunk.objects.filter(section__path=["Keys"])
    expected = np.array(of_words(f"Sleeping in the lighthouse > Keys\n\n{chunk.text}"))
    stored = np.array(chunk.vectors.get(model=OTHER).embedding)
    assert stored @ expected / np.linalg.norm(expected) > 0.999
    for section in chunk.document.sections.all():
        parts = ChunkVector.objects.filter(chunk__section=section, model=OTHER)
        mean = np.mean([each.embedding for each in parts], axis=0)
        whole = np.array(section.vectors.get(model=OTHER).embedding)
        assert whole @ mean / np.linalg.norm(mean) > 0.999


def test_an_interrupted_run_goes_on_where_it_was(
    collection: Collection, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "CHUNKS_AT_ONCE", 2)
    embedder = registry.named(OTHER)

    def die(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backfill.fill(collection, embedder, die)
    assert vectors(OTHER)[0] == 2
    registry.forget()
    server.bodies.clear()
    assert reindex.reindex(collection, OTHER).filled == Chunk.objects.count() - 2
    asked = [text for text in server.texts if "\n\n" in text]
    assert len(asked) == Chunk.objects.count() - 2


def test_doing_it_again_encodes_nothing(collection: Collection, server: Server) -> None:
    reindex.reindex(collection, OTHER)
    server.bodies.clear()
    assert reindex.reindex(collection, OTHER).filled == 0
    assert [text for text in server.texts if "\n\n" in text] == []


def test_a_model_that_finds_less_is_not_switched_to_unless_forced(
    collection: Collection, server: Server
) -> None:
    server.vector = of_nothing
    GoldenQuestion.objects.create(
        collection=collection, question="When does breakfast begin?", sources=[source("lighthouse")]
    )
    with pytest.raises(reindex.RecallLost, match="does not hold"):
        # Among four documents ten would find all.
        reindex.reindex(collection, OTHER)
    assert model_of(collection) == embedding.MODEL
    assert reindex.reindex(collection, OTHER, force=True).filled == 0
    assert model_of(collection) == OTHER


def test_golden_questions_are_what_is_compared_by(collection: Collection) -> None:
    for question, answers in {
        "What must guests of the lighthouse not play at night?": [source("quiet")],
        "Can a booking of the ferry be cancelled?": [source("ferry"), "gone.md"],
        "Who sells umbrellas?": [],
        "What was in the deleted page?": ["gone.md"],
    }.items():
        GoldenQuestion.objects.create(collection=collection, question=question, sources=answers)
    comparison = reindex.reindex(collection, OTHER).comparison
    assert comparison is not None
    assert (comparison.basis, comparison.questions) == ("golden questions", 2)
    assert (comparison.before, comparison.after) == (1.0, 1.0)


def test_without_golden_questions_titles_must_find_their_documents(
    collection: Collection, server: Server
) -> None:
    comparison = reindex.reindex(collection, OTHER).comparison
    assert comparison is not None
    assert comparison.basis == "titles and headings"
    assert comparison.questions > 0
    assert comparison.before == 1.0


def test_nothing_is_changed_when_the_new_model_fails(
    collection: Collection, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.time.sleep", lambda seconds: None)
    server.before = [Response("{}", 503)] * 10
    with pytest.raises(Unreachable):
        reindex.reindex(collection, OTHER)
    assert model_of(collection) == embedding.MODEL


def test_a_model_that_is_away_can_be_left_by_force(collection: Collection, server: Server) -> None:
    reindex.reindex(collection, OTHER)
    registry.forget()
    server.before = [Response("{}", 401)] * 2
    with pytest.raises(reindex.RecallLost, match=r"cannot be compared with: .*refuses the key"):
        reindex.reindex(collection, embedding.MODEL)
    server.before = [Response("{}", 401)]
    reindex.reindex(collection, embedding.MODEL, force=True)
    assert model_of(collection) == embedding.MODEL


def test_going_back_encodes_only_what_came_since(
    collection: Collection, island: Path, server: Server
) -> None:
    reindex.reindex(collection, OTHER)
    server.bodies.clear()
    outcome = reindex.back(collection)
    assert (outcome.after, outcome.filled) == (embedding.MODEL, 0)
    assert model_of(collection) == embedding.MODEL
    (island / "late.md").write_text("# Whales\n\nWhales are seen from the lighthouse in spring.")
    ingestion.ingest(find([island]), collection="island")
    assert reindex.back(collection).filled == 1
    assert vectors(OTHER) == vectors(embedding.MODEL)


def test_there_is_no_way_back_without_vectors_or_between_several(collection: Collection) -> None:
    with pytest.raises(reindex.NoWayBack, match="no vectors of another model"):
        reindex.back(collection)
    backfill.fill(collection, registry.named(OTHER))
    backfill.fill(collection, registry.named("third@own"))
    with pytest.raises(reindex.NoWayBack, match=r"third@own, words@own.*--embedding-model"):
        reindex.back(collection)
    assert reindex.back(collection, "third@own").after == "third@own"


def test_vectors_for_other_languages_are_nothing_to_go_back_to(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MULTILINGUAL, "encode", Polyglot())
    backfill.fill(collection, MULTILINGUAL)
    with pytest.raises(reindex.NoWayBack):
        reindex.back(collection)
    assert reindex.back(collection, MULTILINGUAL.name).after == MULTILINGUAL.name
    assert reindex.price(MULTILINGUAL.name, 1000) == 0.0
