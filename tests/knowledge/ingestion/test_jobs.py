"""Jobs: every item takes effect once, whatever is delivered twice, taken over, or called off."""

import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from django.db import connection
from django.utils.timezone import now

from knowledge import ingestion
from knowledge.errors import NothingToIngest, Unreadable
from knowledge.ingestion import Report, job_lease, loader, pipeline, preparer
from knowledge.models import Chunk, Document, Ingest
from knowledge.parsing import Page
from knowledge.sandbox import reader
from tests.knowledge.jobs import FOG, ran, upload

pytestmark = pytest.mark.django_db


def test_upload_becomes_a_document_and_its_bytes_are_let_go() -> None:
    job = upload()
    assert ran(job).new == 1
    assert (job.status, job.report["new"], job.items.get().body) == ("done", 1, None)
    assert Document.objects.get().collection == job.collection


def test_second_delivery_does_nothing() -> None:
    job = upload()
    ran(job)
    assert ingestion.run(job.pk) is None
    assert Document.objects.get().version == 1


def test_job_in_other_hands_is_left_alone_until_its_lease_ends() -> None:
    job = upload()
    Ingest.objects.update(status="running", attempts=1, lease_until=now() + timedelta(seconds=30))
    assert ingestion.run(job.pk) is None
    assert not ingestion.waiting().exists()
    Ingest.objects.update(lease_until=now() - timedelta(seconds=1))
    assert ingestion.waiting().get() == job
    assert ran(job).new == 1


def test_the_lease_of_a_job_is_renewed_until_another_takes_it_over() -> None:
    with job_lease.acquire(upload().pk) as lease:
        assert lease
        Ingest.objects.update(lease_until=now() - timedelta(seconds=1))
        assert job_lease.LEASES.renew(job_lease.LEASES.tokens()) == 1
        assert not ingestion.waiting().exists()
        Ingest.objects.update(token=uuid.uuid4(), lease_until=now() - timedelta(seconds=1))
        assert job_lease.LEASES.renew([lease.token]) == 0
        assert ingestion.waiting().exists()
    assert job_lease.LEASES.tokens() == []


def test_job_that_does_not_exist_is_nothing_to_do() -> None:
    assert ingestion.run(uuid.uuid4()) is None


@pytest.mark.parametrize("uploads", [[], [("fog.md", FOG), ("fog.md", b"Another.")]])
def test_job_of_nothing_or_of_two_files_of_one_name_is_refused(
    uploads: list[tuple[str, bytes]],
) -> None:
    with pytest.raises(NothingToIngest):
        ingestion.plan("island", uploads=uploads)
    assert not Ingest.objects.exists()


@pytest.mark.parametrize("url", ["ftp://example.com/x", "https://me:secret@example.com/"])
def test_address_nobody_may_ask_for_is_refused_before_there_is_a_job(url: str) -> None:
    with pytest.raises(Unreadable):
        ingestion.plan("island", urls=[url])
    assert not Ingest.objects.exists()


def test_same_paths_asked_for_again_while_their_job_is_open_are_one_job(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    assert ingestion.plan("island", paths=[island]) == job
    assert ingestion.plan("island", paths=[island], force=True) != job
    assert ingestion.plan("mainland", paths=[island]) != job
    ran(job)
    assert ingestion.plan("island", paths=[island]) != job


def test_cancelled_job_stops_between_items_and_goes_on_when_tried_again(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    monkeypatch.setattr(job_lease, "BEAT_SECONDS", 0.0)
    job = ingestion.plan("island", paths=[island])

    def call_off(finished: int, total: int, current: str) -> None:
        if finished == 2:
            assert ingestion.cancel(job.pk)

    assert ingestion.run(job.pk, call_off) is None
    job.refresh_from_db()
    assert (job.status, Document.objects.count()) == ("cancelled", 2)
    assert not ingestion.cancel(job.pk)
    assert ingestion.run(job.pk) is None
    assert ingestion.retry(job.pk) == 2
    assert ran(job).new == 4


def test_job_called_off_whose_worker_died_ends_at_its_next_start() -> None:
    job = upload()
    Ingest.objects.update(status="running", attempts=1, lease_until=now() + timedelta(seconds=30))
    assert ingestion.cancel(job.pk)
    Ingest.objects.update(lease_until=now() - timedelta(seconds=1))
    assert ingestion.run(job.pk) is None
    job.refresh_from_db()
    assert (job.status, job.cancelling, Document.objects.count()) == ("cancelled", False, 0)


def test_job_called_off_is_not_queued_again_when_its_worker_gives_it_back() -> None:
    job = upload()

    def end_the_process(*_: object) -> NoReturn:
        ingestion.cancel(job.pk)
        raise SystemExit

    with pytest.raises(SystemExit):
        ingestion.run(job.pk, end_the_process)
    job.refresh_from_db()
    assert job.status == "cancelled"


@pytest.fixture
def misbehaving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "COMMAND", "tests.knowledge.misbehaving")
    for module in (loader, preparer):
        monkeypatch.setattr(module, "Reader", reader.Reader)
    monkeypatch.setattr(preparer, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(job_lease, "BEAT_SECONDS", 0.0)


@pytest.mark.usefixtures("misbehaving")
def test_job_called_off_does_not_wait_for_the_file_at_hand() -> None:
    job = upload(name="hang.md")

    def call_off(*_: object) -> None:
        ingestion.cancel(job.pk)

    assert ingestion.run(job.pk, call_off) is None
    job.refresh_from_db()
    assert (job.status, Document.objects.count()) == ("cancelled", 0)


@pytest.mark.usefixtures("misbehaving")
def test_who_is_called_off_ends_what_cuts_a_page() -> None:
    children: list[reader.Child] = []

    def call_off() -> None:
        if cutting.reader.child is not None:
            children.append(cutting.reader.child)
            raise job_lease.Cancelled

    cutting = preparer.Preparer(256, call_off)
    with pytest.raises(job_lease.Cancelled):
        cutting.prepare(Page("Words."), "hang.md", [])
    cutting.close()
    assert [child.is_alive for child in children] == [False]


def test_waiting_job_is_cancelled_at_once() -> None:
    job = upload()
    assert ingestion.cancel(job.pk)
    assert ingestion.run(job.pk) is None
    job.refresh_from_db()
    assert job.status == "cancelled"


def test_open_job_cannot_be_tried_again() -> None:
    with pytest.raises(ingestion.JobError, match="has ended"):
        ingestion.retry(upload().pk)


def test_worker_that_lost_its_lease_changes_nothing_more(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)
    job = ingestion.plan("island", paths=[island])
    other = uuid.uuid4()

    def take_over(finished: int, total: int, current: str) -> None:
        if finished == 1:
            Ingest.objects.filter(pk=job.pk).update(token=other)

    assert ingestion.run(job.pk, take_over) is None
    job.refresh_from_db()
    assert (job.status, job.token, Document.objects.count()) == ("running", other, 1)


def test_progress_counts_what_is_done_and_what_is_left(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    state = ingestion.progress(job)
    assert (state.items, state.finished, state.seconds_left) == (4, 0, None)
    outcome = ran(job)
    state = ingestion.progress(job)
    assert (state.items, state.finished, state.documents) == (4, 4, 4)
    assert state.outcomes == {"new": 4}
    assert state.chunks == outcome.chunks == Chunk.objects.count()


@pytest.mark.django_db(transaction=True)
def test_many_deliveries_at_once_are_one(island: Path) -> None:
    job = ingestion.plan("island", paths=[island])
    outcomes: list[Report | None] = []

    def work() -> None:
        outcomes.append(ingestion.run(job.pk))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.new for each in outcomes if each is not None] == [4]
    assert Document.objects.count() == 4
