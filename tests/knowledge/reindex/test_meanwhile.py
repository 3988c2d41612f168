"""Reindexing meanwhile: documents come and go and questions are asked while the model changes."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils.timezone import now

from knowledge import embedding, ingestion, reindex
from knowledge.ingestion import find
from knowledge.models import Chunk, ChunkVector, Collection, DocumentVector, Ingest
from knowledge.search import search
from tests.knowledge.endpoint import Server
from tests.knowledge.words import OTHER, vectors

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("one_document_counts"),
]


def test_a_document_that_comes_while_vectors_are_made_is_searched_by_the_new_ones(
    collection: Collection, island: Path
) -> None:
    (island / "late.md").write_text("# Whales\n\nWhales are seen from the lighthouse in spring.")
    steps: list[int] = []

    def ingest(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) == 1:
            ingestion.ingest(find([island]), collection="island")

    reindex.reindex(collection, OTHER, watch=ingest)
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

    monkeypatch.setattr("knowledge.reindex.switchover.sleep", end)
    reindex.reindex(collection, OTHER)
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
    reindex.reindex(collection, OTHER)
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
    reindex.reindex(collection, OTHER)
    reindex.back(collection)
    reindex.reindex(collection, OTHER)
    over.set()
    thread.join()
    assert errors
    assert set(errors) == {""}
    assert models_seen <= {OTHER, embedding.MODEL}
