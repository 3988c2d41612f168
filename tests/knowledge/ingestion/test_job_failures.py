"""Jobs that fail: the item it was is found and said, and what was done before is kept."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding import registry
from knowledge.embedding.local import LOCAL
from knowledge.errors import EmbeddingUnavailable
from knowledge.ingestion import pipeline
from knowledge.ingestion import store as storage
from knowledge.models import Chunk, Document, Encoded, Ingest
from tests.knowledge.endpoint import Server
from tests.knowledge.jobs import FOG, ran, states, upload

pytestmark = pytest.mark.django_db


def test_item_that_killed_three_workers_is_set_aside_and_the_rest_goes_on() -> None:
    job = ingestion.plan(
        "island", uploads=[("bad.md", FOG), ("good.md", b"The harbour is open at night.")]
    )
    Ingest.objects.update(status="running", attempts=3, lease_until=now() - timedelta(seconds=1))
    ran(job)
    assert states(job) == {"bad.md": "skipped", "good.md": "new"}
    assert job.items.get(number=1).reason == "3 workers died over it"
    assert job.status == "done"


def test_job_without_items_left_that_killed_three_workers_is_given_up() -> None:
    job = upload()
    job.items.update(status="new")
    Ingest.objects.update(status="running", attempts=3, lease_until=now() - timedelta(seconds=1))
    assert ingestion.run(job.pk) is None
    job.refresh_from_db()
    assert (job.status, job.error) == ("failed", "Given up: 3 workers died over it.")


def test_unreadable_upload_fails_with_the_reason_and_is_not_tried_again() -> None:
    job = upload(b"\0\1")
    ran(job)
    assert (job.status, job.error) == ("failed", "it is a binary file and not text")
    assert not ingestion.waiting().exists()


def test_job_waits_when_the_model_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(texts: Sequence[str], **_: Any) -> NoReturn:
        raise EmbeddingUnavailable

    monkeypatch.setattr(LOCAL, "encode", missing)
    job = upload()
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable):
            ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.attempts) == ("failed", 3)
    monkeypatch.undo()
    assert ingestion.retry(job.pk) == 1
    assert ran(job).new == 1


def test_error_over_one_item_is_said_with_it_and_the_others_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = storage.write_chunks

    def fail(document: Document, *rest: Any) -> None:
        if document.source == "island/fog.txt":
            raise ValueError("no such thing as fog")
        store(document, *rest)

    monkeypatch.setattr(storage, "write_chunks", fail)
    job = ingestion.plan("island", paths=[island])
    outcome = ran(job)
    assert (outcome.new, len(outcome.skipped)) == (3, 1)
    assert outcome.skipped[0].reason == "Docent failed over it: ValueError: no such thing as fog"
    assert not Document.objects.filter(source="island/fog.txt").exists()
    monkeypatch.undo()
    assert ingestion.retry(job.pk) == 1
    assert ran(job).new == 4


def test_error_nobody_thought_of_is_raised_and_said_and_the_rest_can_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = storage.write_chunks

    def fail(document: Document, *rest: Any) -> None:
        if document.source == "island/fog.txt":
            raise AttributeError("a mistake of ours")
        store(document, *rest)

    monkeypatch.setattr(storage, "write_chunks", fail)
    job = ingestion.plan("island", paths=[island])
    with pytest.raises(AttributeError):
        ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, "a mistake of ours" in job.error) == ("queued", True)
    outcome = ran(job)
    assert (outcome.new, [each.source for each in outcome.skipped]) == (3, ["island/fog.txt"])


def test_item_that_makes_a_batch_fail_is_found_and_the_others_go_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = LOCAL.encode

    def fail(texts: Sequence[str], **more: Any) -> Any:
        if any("foghorn sounds" in text for text in texts):
            raise RuntimeError("the model does not like fog")
        return encode(texts, **more)

    monkeypatch.setattr(LOCAL, "encode", fail)
    job = ingestion.plan("island", paths=[island])
    for _ in range(2):
        with pytest.raises(RuntimeError):
            ingestion.run(job.pk)
    outcome = ran(job)
    assert (outcome.new, [each.source for each in outcome.skipped]) == (3, ["island/fog.txt"])
    assert "the model does not like fog" in outcome.skipped[0].reason


def test_vectors_of_a_long_document_outlive_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "\n\n".join(f"## Pier {n}\n\n" + f"Pier {n} has a crane. " * 40 for n in range(80))
    job = upload(body.encode())
    encode, encoded = LOCAL.encode, list[int]()

    def counted(texts: Sequence[str], **more: Any) -> Any:
        encoded.append(len(texts))
        if len(encoded) == 2:
            raise SystemExit
        return encode(texts, **more)

    monkeypatch.setattr(LOCAL, "encode", counted)
    with pytest.raises(SystemExit):
        ingestion.run(job.pk)
    assert (Document.objects.count(), Encoded.objects.count()) == (0, 64)
    assert ran(job).new == 1
    assert sum(encoded) - encoded[1] == Chunk.objects.count() > 64
    assert not Encoded.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_vectors_that_a_provider_was_paid_for_are_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, server: Server, settings: Settings, island: Path
) -> None:
    settings.EMBEDDING_MODEL = "words@own"
    job = ingestion.plan("island", paths=[island])
    for stored in (1, 0, 2):
        monkeypatch.setattr(pipeline, "store", dying(after=stored))
        with pytest.raises(SystemExit):
            ingestion.run(job.pk)
        registry.forget()  # another process remembers nothing
    monkeypatch.setattr(pipeline, "store", storage.store)
    assert ran(job).new == 4
    assert set(Counter(server.texts).values()) == {1}
    assert not Encoded.objects.exists()


def dying(after: int) -> Callable[..., str]:
    """Return what stores so many documents and then has the worker killed."""
    left = after

    def store(*args: Any, **more: Any) -> str:
        nonlocal left
        if not left:
            raise SystemExit
        left -= 1
        return storage.store(*args, **more)

    return store


def test_rows_of_json_count_once_however_often_the_worker_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    rows = ", ".join(f'{{"content": "The harbour has {n} piers."}}' for n in range(9))
    job = upload(f"[{rows}]".encode(), "piers.json")
    begun = 0

    def die(finished: int, total: int, current: str) -> None:
        nonlocal begun
        begun += 1
        if begun in {3, 8}:
            raise SystemExit

    for _ in range(2):
        with pytest.raises(SystemExit):
            ingestion.run(job.pk, die)
    outcome = ran(job)
    assert (outcome.new, outcome.unchanged) == (9, 0)
    assert set(Document.objects.values_list("version", flat=True)) == {1}
