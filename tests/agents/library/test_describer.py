"""Documents described by a model, several at once: what is stored is what one by one would be."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils.timezone import now
from pytest_django import Settings

from agents.llm.requests import Choice
from agents.models import ModelCall
from knowledge import ingestion
from knowledge.ingestion import describer, job_lease
from knowledge.ingestion.job_lease import LeaseLost
from knowledge.models import Chunk, Document, Ingest
from tests.scripted import Call, Response, Scripted, shaped

pytestmark = pytest.mark.usefixtures("described")

PAGES = 12
DESCRIBER = Choice("fake@scripted", timeout=30)
BROKEN = "bay 3"


def said(call: Call) -> Response:
    """What the model says of a page: what its title is."""
    title = next(line for line in call.user.splitlines() if "Bay" in line)
    return shaped(description=title, summary=title, keypoints=[title], keywords=["bay"])


@pytest.fixture
def described(models: Scripted, settings: Settings) -> Scripted:
    """A model describes documents."""
    settings.MODELS = settings.MODELS | {"enrichment": DESCRIBER}
    models.says("enrichment", said)
    return models


@pytest.fixture
def bays(tmp_path: Path) -> Path:
    """A folder of pages, of which one cannot be read and one is a copy."""
    folder = tmp_path / "bays"
    folder.mkdir()
    for number in range(PAGES):
        text = f"# Bay {number}\n\nThe crane of bay {number} was painted in {1900 + number}."
        (folder / f"bay-{number:02}.md").write_text(text)
    (folder / "bay-04b.md").write_bytes((folder / "bay-04.md").read_bytes())
    (folder / "bay-05b.md").write_bytes(b"\0\1")
    return folder


def planned(folder: Path, collection: str = "bays", **options: Any) -> Ingest:
    return ingestion.plan(collection, paths=[folder], **options)


def rows(name: str) -> list[Any]:
    """What two collections have in common when one took in what the other did."""
    documents = Document.objects.filter(collection__name=name)
    chunks = Chunk.objects.filter(document__collection__name=name)
    job = Ingest.objects.get(collection__name=name)
    said = ("source", "title", "description", "summary", "keypoints", "keywords", "version")
    return [
        [*documents.order_by("created").values_list(*said)],
        [*chunks.order_by("document__source", "number").values_list("text", "keywords")],
        [*job.items.order_by("number").values_list("origin", "status", "reason", "warnings")],
        {**job.report, "seconds": 0, "collection": ""},
    ]


def test_several_are_described_at_once_and_stored_as_one_by_one(
    described: Scripted, bays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Event()

    def last_first(call: Call) -> Response:
        if len(described.server.ledger) == describer.AT_ONCE:
            together.set()
        if BROKEN in call.user:
            return Response(status=401)
        reply = said(call)
        reply.until = together
        return reply

    described.says("enrichment", last_first)
    ingestion.run(planned(bays).pk)
    assert together.is_set()
    ModelCall.objects.all().delete()
    monkeypatch.setattr(describer, "AT_ONCE", 1)
    monkeypatch.setattr(describer, "AHEAD", 1)
    ingestion.run(planned(bays, "one-by-one").pk)
    assert rows("bays") == rows("one-by-one")
    assert len(described.server.ledger) == 2 * PAGES


def test_a_failing_call_is_the_failure_of_one_document(described: Scripted, bays: Path) -> None:
    described.says(
        "enrichment", lambda call: Response(status=401) if BROKEN in call.user else said(call)
    )
    report = ingestion.run(planned(bays).pk)
    assert report is not None
    assert report.new == PAGES
    broken = [each.source for each in report.warnings if "model failed" in each.reason]
    assert broken == ["bays/bay-03.md"]
    assert Document.objects.filter(description__startswith="The crane").count() == 1


def test_a_draft_that_fails_skips_its_document_only(
    bays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(draft: Any, questions: Any) -> Any:
        if draft.sheet.source == "bays/bay-07.md":
            raise ValueError("no such bay")
        return draft

    monkeypatch.setattr(describer, "describe_by_models", fail)
    job = planned(bays)
    ingestion.run(job.pk)
    skipped = dict(job.items.filter(status="skipped").values_list("origin", "reason"))
    assert "no such bay" in skipped["bays/bay-07.md"]
    assert Document.objects.count() == PAGES - 1


def test_who_goes_on_asks_nothing_twice(
    described: Scripted, bays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowledge.ingestion.pipeline.CHUNKS_AT_ONCE", 1)
    job = planned(bays)

    def overtaken(finished: int, *_: Any) -> None:
        if finished >= 5:
            raise LeaseLost

    assert ingestion.run(job.pk, overtaken) is None
    assert 0 < Document.objects.count() < PAGES
    Ingest.objects.update(lease_until=now())
    assert ingestion.run(job.pk) is not None
    assert Document.objects.count() == PAGES
    assert len(described.server.ledger) == PAGES


def test_a_cancelled_job_asks_nothing_more(
    described: Scripted, bays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(describer, "Event", lambda: stopped)
    monkeypatch.setattr(describer, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(job_lease, "BEAT_SECONDS", 0.0)

    def at_the_end(call: Call) -> Response:
        reply = said(call)
        reply.until = stopped
        return reply

    described.says("enrichment", at_the_end)
    job = planned(bays)

    def cancel(*_: Any) -> None:
        if len(described.server.ledger) == describer.AT_ONCE:
            ingestion.cancel(job.pk)

    ingestion.run(job.pk, cancel)
    job.refresh_from_db()
    assert job.status == "cancelled"
    assert len(described.server.ledger) == describer.AT_ONCE
    assert ModelCall.objects.filter(outcome="ok").count() == describer.AT_ONCE


def test_nobody_holds_a_connection_while_the_model_is_asked(
    described: Scripted, bays: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describer, "BEAT_SECONDS", 0.01)
    looked, lent = threading.Event(), list[int]()

    def hold(call: Call) -> Response:
        reply = said(call)
        reply.until = looked
        return reply

    described.says("enrichment", hold)

    def look(*_: Any) -> None:
        if len(described.server.ledger) == describer.AT_ONCE and not looked.is_set():
            connection.close()
            stats = connection.pool.get_stats()  # type: ignore[attr-defined]
            lent.append(stats["pool_size"] - stats["pool_available"])
            looked.set()

    ingestion.run(planned(bays).pk, look)
    assert lent == [0]


def test_one_text_in_two_files_is_asked_about_once(described: Scripted, tmp_path: Path) -> None:
    folder = tmp_path / "bays"
    folder.mkdir()
    for name in ("left", "right"):
        front = f"---\ntitle: Bay 1\ntags: [{name}]\n---\n\n"
        (folder / f"{name}.md").write_text(f"{front}The crane of bay 1 was painted anew.")
    ingestion.run(planned(folder).pk)
    assert Document.objects.filter(description__contains="Bay 1").count() == 2
    assert len(described.server.ledger) == 1


@pytest.mark.parametrize(("choice", "threads"), [(Choice(), False), (DESCRIBER, True)])
def test_without_a_model_there_is_no_thread_for_it(
    described: Scripted, bays: Path, settings: Settings, choice: Choice, threads: bool
) -> None:
    settings.MODELS = settings.MODELS | {"enrichment": choice}
    seen: set[str] = set()

    def look(*_: Any) -> None:
        seen.update(thread.name.rpartition("_")[0] for thread in threading.enumerate())

    report = ingestion.run(planned(bays).pk, look)
    assert report is not None
    assert report.new == PAGES
    assert "ingest loader" in seen
    assert ("ingest describer" in seen) == bool(described.server.ledger) == threads
