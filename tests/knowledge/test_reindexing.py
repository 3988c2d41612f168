"""Reindexing: a collection gets another embedding model while it is searched."""

import json
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils.timezone import now
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Response

from knowledge import embedding, ingestion, reindexing
from knowledge.embedding import models
from knowledge.embedding.errors import Unreachable
from knowledge.ingestion import find
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    DocumentVector,
    GoldenQuestion,
    Ingest,
    SectionVector,
)
from knowledge.providers import Provider
from knowledge.reindexing import filling
from knowledge.search import indexes, search
from tests.knowledge.endpoint import Server

pytestmark = pytest.mark.django_db(transaction=True)

DIMENSIONS = 512
OTHER = "words@own"
KINDS = (ChunkVector, SectionVector, DocumentVector)


def of_words(text: str) -> list[float]:
    """A vector that has something in common with those of texts with the same words."""
    vector = [0.01] * DIMENSIONS
    for word in re.findall(r"\w{4,}", text.lower()):
        vector[crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector


def of_nothing(text: str) -> list[float]:
    """The same for every text, so that nothing can be told from anything."""
    return [1.0] * DIMENSIONS


@pytest.fixture
def server(httpserver: HTTPServer, settings: Settings) -> Iterator[Server]:
    settings.PROVIDERS = {"own": Provider("own", httpserver.url_for("/v1"))}
    settings.EMBEDDING_WINDOW = 512
    models.forget()
    yield Server(httpserver, of_words)
    models.forget()


@pytest.fixture
def collection(island: Path, server: Server) -> Collection:
    ingestion.ingest(find([island]), collection="island")
    return Collection.objects.get(name="island")


def run(*words: str) -> Any:
    out = StringIO()
    call_command("reindex", *words, "--json", stdout=out)
    return json.loads(out.getvalue())


def vectors(model: str) -> list[int]:
    """How many there are of the model, per kind."""
    return [kind.objects.filter(model=model).count() for kind in KINDS]


def model_of(collection: Collection) -> str:
    collection.refresh_from_db()
    return collection.embedding_model


def test_collection_is_searched_by_the_new_vectors_and_keeps_the_old(
    collection: Collection, server: Server
) -> None:
    told: list[int] = []
    outcome = reindexing.reindex(collection, OTHER, watch=told.append)
    chunks = Chunk.objects.count()
    assert (outcome.before, outcome.after, outcome.filled) == (embedding.MODEL, OTHER, chunks)
    assert sum(told) == chunks
    assert model_of(collection) == OTHER
    assert vectors(OTHER) == vectors(embedding.MODEL)
    assert all(indexes.is_valid(indexes.name(kind, OTHER)) for kind in indexes.KINDS)
    found = search("How is the foghorn sounded?", collections=["island"])
    assert found.error == ""
    assert "How is the foghorn sounded?" in server.texts
    assert "foghorn" in found.passages[0].text
    assert found.passages[0].cosine is not None


def test_vectors_are_of_the_headings_and_the_text_and_sections_lie_at_their_mean(
    collection: Collection,
) -> None:
    reindexing.reindex(collection, OTHER)
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
    monkeypatch.setattr(filling, "AT_ONCE", 2)
    embedder = models.named(OTHER)

    def die(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filling.fill(collection, embedder, die)
    assert vectors(OTHER)[0] == 2
    models.forget()
    server.bodies.clear()
    assert reindexing.reindex(collection, OTHER).filled == Chunk.objects.count() - 2
    asked = [text for text in server.texts if "\n\n" in text]
    assert len(asked) == Chunk.objects.count() - 2


def test_doing_it_again_encodes_nothing(collection: Collection, server: Server) -> None:
    reindexing.reindex(collection, OTHER)
    server.bodies.clear()
    assert reindexing.reindex(collection, OTHER).filled == 0
    assert [text for text in server.texts if "\n\n" in text] == []


def test_a_model_that_finds_less_is_not_switched_to_unless_forced(
    collection: Collection, server: Server
) -> None:
    server.vector = of_nothing
    GoldenQuestion.objects.create(
        collection=collection, question="When does breakfast begin?", sources=[source("lighthouse")]
    )
    with pytest.raises(reindexing.RecallLost, match="does not hold"):
        # Among four documents ten would find all.
        reindexing.reindex(collection, OTHER)
    assert model_of(collection) == embedding.MODEL
    assert reindexing.reindex(collection, OTHER, force=True).filled == 0
    assert model_of(collection) == OTHER


def source(part: str) -> str:
    return str(Chunk.objects.filter(document__source__contains=part)[0].document.source)


@pytest.fixture(autouse=True)
def one_document_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The island has four documents, of which the first ten are all."""
    monkeypatch.setattr("knowledge.reindexing.comparing.AT", 1)


def test_golden_questions_are_what_is_compared_by(collection: Collection) -> None:
    for question, answers in {
        "What must guests of the lighthouse not play at night?": [source("quiet")],
        "Can a booking of the ferry be cancelled?": [source("ferry"), "gone.md"],
        "Who sells umbrellas?": [],
        "What was in the deleted page?": ["gone.md"],
    }.items():
        GoldenQuestion.objects.create(collection=collection, question=question, sources=answers)
    comparison = reindexing.reindex(collection, OTHER).comparison
    assert comparison is not None
    assert (comparison.basis, comparison.questions) == ("golden questions", 2)
    assert (comparison.before, comparison.after) == (1.0, 1.0)


def test_without_golden_questions_titles_must_find_their_documents(
    collection: Collection, server: Server
) -> None:
    comparison = reindexing.reindex(collection, OTHER).comparison
    assert comparison is not None
    assert comparison.basis == "titles and headings"
    assert comparison.questions > 0
    assert comparison.before == 1.0


def test_a_document_that_comes_while_vectors_are_made_is_searched_by_the_new_ones(
    collection: Collection, island: Path
) -> None:
    (island / "late.md").write_text("# Whales\n\nWhales are seen from the lighthouse in spring.")
    came: list[int] = []

    def ingest(count: int) -> None:
        if not came:
            came.append(count)
            ingestion.ingest(find([island]), collection="island")

    reindexing.reindex(collection, OTHER, watch=ingest)
    assert vectors(OTHER) == vectors(embedding.MODEL)
    assert search("whales in spring", collections=["island"]).passages[0].title == "Whales"


def test_what_a_job_stores_after_the_switch_that_began_before_is_filled(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Ingest.objects.create(
        collection=collection,
        name="long",
        status=Ingest.Status.RUNNING,
        started=now(),
        lease_until=now() + timedelta(minutes=1),
    )

    def end(seconds: float) -> None:
        # As if stored by a job that holds the collection as it was before the switch.
        late = Chunk.objects.filter(document__source__contains="fog")
        assert ChunkVector.objects.filter(chunk__in=late, model=OTHER).delete()[0]
        Ingest.objects.filter(pk=job.pk).update(status=Ingest.Status.DONE)

    monkeypatch.setattr("knowledge.reindexing.switching.sleep", end)
    reindexing.reindex(collection, OTHER)
    assert Ingest.objects.get(pk=job.pk).status == Ingest.Status.DONE
    assert vectors(OTHER)[0] == Chunk.objects.count()


def test_a_document_that_goes_while_vectors_are_made_leaves_nothing_behind(
    collection: Collection, island: Path, server: Server
) -> None:
    (island / "fog.txt").unlink()
    gone: list[dict[str, Any]] = []

    def remove(answer: dict[str, Any]) -> None:
        if not gone:
            gone.append(answer)
            thread = threading.Thread(target=removed)
            thread.start()
            thread.join()

    def removed() -> None:
        ingestion.ingest(find([island]), collection="island")
        connection.close()

    server.change = remove
    reindexing.reindex(collection, OTHER)
    assert vectors(OTHER) == vectors(embedding.MODEL)
    assert DocumentVector.objects.filter(model=OTHER).count() == 3


def test_no_question_fails_or_loses_its_vectors_while_the_model_changes(
    collection: Collection,
) -> None:
    over = threading.Event()
    errors: list[str] = []
    models_seen: set[str] = set()

    def ask() -> None:
        while not over.is_set():
            found = search("Who hands out the key of a room?", collections=["island"])
            errors.append(found.error)
            models_seen.update(Collection.objects.values_list("embedding_model", flat=True))
            if not found.passages or found.passages[0].cosine is None:
                errors.append("nothing was found")
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    reindexing.reindex(collection, OTHER)
    reindexing.back(collection)
    reindexing.reindex(collection, OTHER)
    over.set()
    thread.join()
    assert errors
    assert set(errors) == {""}
    assert models_seen <= {OTHER, embedding.MODEL}


def test_nothing_is_changed_when_the_new_model_fails(
    collection: Collection, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openai._base_client.time.sleep", lambda seconds: None)
    server.before = [Response("{}", 503)] * 10
    with pytest.raises(Unreachable):
        reindexing.reindex(collection, OTHER)
    assert model_of(collection) == embedding.MODEL


def test_a_model_that_is_away_can_be_left_by_force(collection: Collection, server: Server) -> None:
    reindexing.reindex(collection, OTHER)
    models.forget()
    server.before = [Response("{}", 401)] * 2
    with pytest.raises(reindexing.RecallLost, match=r"cannot be compared with: .*refuses the key"):
        reindexing.reindex(collection, embedding.MODEL)
    server.before = [Response("{}", 401)]
    reindexing.reindex(collection, embedding.MODEL, force=True)
    assert model_of(collection) == embedding.MODEL


def test_going_back_encodes_only_what_came_since(
    collection: Collection, island: Path, server: Server
) -> None:
    reindexing.reindex(collection, OTHER)
    server.bodies.clear()
    outcome = reindexing.back(collection)
    assert (outcome.after, outcome.filled) == (embedding.MODEL, 0)
    assert model_of(collection) == embedding.MODEL
    (island / "late.md").write_text("# Whales\n\nWhales are seen from the lighthouse in spring.")
    ingestion.ingest(find([island]), collection="island")
    assert reindexing.back(collection).filled == 1
    assert vectors(OTHER) == vectors(embedding.MODEL)


def test_there_is_no_way_back_without_vectors_or_between_several(collection: Collection) -> None:
    with pytest.raises(reindexing.NoWayBack, match="no vectors of another model"):
        reindexing.back(collection)
    filling.fill(collection, models.named(OTHER))
    filling.fill(collection, models.named("third@own"))
    with pytest.raises(reindexing.NoWayBack, match=r"third@own, words@own.*--embedding-model"):
        reindexing.back(collection)
    assert reindexing.back(collection, "third@own").after == "third@own"


def test_vectors_in_use_are_never_dropped_and_others_go_with_their_indexes(
    collection: Collection,
) -> None:
    with pytest.raises(reindexing.InUse, match="searched by the vectors of all-MiniLM-L6-v2"):
        reindexing.drop(collection, embedding.MODEL)
    reindexing.reindex(collection, OTHER)
    reindexing.back(collection)
    count = sum(vectors(OTHER))
    assert run("island", "--drop", OTHER) == {"removed": count}
    assert vectors(OTHER) == [0, 0, 0]
    assert not any(indexes.is_valid(indexes.name(kind, OTHER)) for kind in indexes.KINDS)
    reindexing.reindex(collection, OTHER)
    run("island", "--drop", embedding.MODEL)
    assert all(indexes.is_valid(indexes.name(kind, embedding.MODEL)) for kind in indexes.KINDS)


def test_a_dry_run_says_what_it_takes_and_changes_nothing(
    collection: Collection, server: Server
) -> None:
    plan = run("island", "--embedding-model", OTHER, "--dry-run")["plan"]
    assert plan["chunks"] == plan["missing"] == Chunk.objects.count()
    assert plan["documents"] == 4
    assert plan["dimensions"] == DIMENSIONS
    assert plan["tokens"] > 0
    assert plan["dollars"] is None
    assert vectors(OTHER) == [0, 0, 0]
    assert model_of(collection) == embedding.MODEL


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        (embedding.MODEL, 0.0),
        ("nomic-embed-text@ollama", 0.0),
        ("text-embedding-3-small@openai", pytest.approx(0.02, rel=0.9)),
        ("some-model@openai", None),
        ("some-model@acme", None),
    ],
)
def test_cost_is_what_is_known_of_the_price(model: str, dollars: float | None) -> None:
    assert reindexing.price(model, 1_000_000) == dollars


def test_the_command_says_what_happened_and_how_to_go_back(collection: Collection) -> None:
    out = StringIO()
    call_command("reindex", "island", "--embedding-model", OTHER, stdout=out)
    said = " ".join(out.getvalue().split())
    assert "cost, about" in said
    assert "unknown" in said
    assert "it holds" in said
    assert "`reindex island --back` goes back" in said
    assert model_of(collection) == OTHER
    assert run("island", "--back")["after"] == embedding.MODEL


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere", "--embedding-model", OTHER), "There is no collection 'nowhere'"),
        (("island", "--embedding-model", "x@nobody"), "There is no provider 'nobody'"),
        (("island", "--back"), "no vectors of another model"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    collection: Collection, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(said)):
        run(*words)
