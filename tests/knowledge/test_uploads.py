"""Uploads: ingested once, whatever is delivered twice or dies."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import NoReturn

import pytest
from django.utils.timezone import now

from knowledge import embedding, ingestion
from knowledge.errors import EmbeddingUnavailable
from knowledge.models import Collection, Document, Ingest

pytestmark = pytest.mark.django_db


@pytest.fixture
def upload() -> Ingest:
    collection = Collection.objects.create(name="island")
    return Ingest.objects.create(
        collection=collection,
        name="fog.md",
        body=b"---\ntitle: Fog\n---\nThe foghorn sounds twice.",
    )


def test_upload_becomes_a_document_and_its_bytes_are_let_go(upload: Ingest) -> None:
    report = ingestion.run(upload.pk)
    upload.refresh_from_db()
    assert report is not None
    assert report.new == ["fog.md"]
    assert (upload.status, upload.report["new"], bytes(upload.body)) == ("done", ["fog.md"], b"")
    assert Document.objects.get().collection == upload.collection


def test_second_delivery_does_nothing(upload: Ingest) -> None:
    ingestion.run(upload.pk)
    assert ingestion.run(upload.pk) is None
    assert Document.objects.get().version == 1


def test_upload_in_other_hands_is_left_alone_until_its_lease_ends(upload: Ingest) -> None:
    Ingest.objects.update(status="running", attempts=1, lease_until=now() + timedelta(seconds=30))
    assert ingestion.run(upload.pk) is None
    assert not ingestion.waiting().exists()
    Ingest.objects.update(lease_until=now() - timedelta(seconds=1))
    assert ingestion.waiting().get() == upload
    report = ingestion.run(str(upload.pk))
    assert report is not None
    assert report.new == ["fog.md"]


def test_upload_that_killed_three_workers_is_given_up(upload: Ingest) -> None:
    Ingest.objects.update(status="running", attempts=3, lease_until=now() - timedelta(seconds=1))
    assert ingestion.run(upload.pk) is None
    upload.refresh_from_db()
    assert (upload.status, upload.error) == ("failed", "Given up: 3 workers died over it.")


def test_unreadable_upload_fails_with_the_reason_and_is_not_tried_again(upload: Ingest) -> None:
    Ingest.objects.update(body=b"\0\1")
    ingestion.run(upload.pk)
    upload.refresh_from_db()
    assert (upload.status, upload.error) == ("failed", "it is a binary file and not text")
    assert not ingestion.waiting().exists()


def test_upload_waits_when_the_model_cannot_be_loaded(
    upload: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(texts: Sequence[str]) -> NoReturn:
        raise EmbeddingUnavailable

    monkeypatch.setattr(embedding, "encode", missing)
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable):
            ingestion.run(upload.pk)
    upload.refresh_from_db()
    assert (upload.status, upload.attempts) == ("failed", 3)


def test_upload_of_the_same_name_replaces_the_document(upload: Ingest) -> None:
    ingestion.run(upload.pk)
    second = Ingest.objects.create(
        collection=upload.collection, name="fog.md", body=b"The foghorn is silent now."
    )
    report = ingestion.run(second.pk)
    assert report is not None
    assert report.changed == ["fog.md"]
    assert Document.objects.get().version == 2


def test_upload_that_does_not_exist_is_nothing_to_do(db: None) -> None:
    assert ingestion.run(uuid.uuid4()) is None
