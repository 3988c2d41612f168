"""What is done to a collection as a whole: once, in the background, with a result that is kept."""

import uuid
from datetime import timedelta
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.utils.timezone import now
from pytest_django import Settings

from agents.steps.sweeper import calibrate_collections
from knowledge import calibration, ingestion, upkeep
from knowledge.ingestion.jobs import cancel
from knowledge.ingestion.report import progress
from knowledge.models import (
    Calibration,
    Census,
    Collection,
    Document,
    GoldenQuestion,
    Ingest,
    Piece,
    Relation,
    Reliance,
)
from knowledge.search import search
from knowledge.tasks import ingest
from knowledge.versions import answers_citing, version
from tests.assistant.test_admin import state
from tests.knowledge.jobs import FOG, ran, upload

pytestmark = pytest.mark.django_db(transaction=True)
Kind = Ingest.Kind


@pytest.fixture
def island(monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection with one document, of which a calibration asks little."""
    samples = calibration.everyday()[::20]
    monkeypatch.setattr(calibration, "everyday", lambda: samples)
    ran(upload())
    return Collection.objects.get(name="island")


def done(job: Ingest) -> Ingest:
    """The job after a worker took it."""
    ingest(str(job.pk))
    job.refresh_from_db()
    return job


def test_two_presses_make_one_job_and_the_next_one_another(island: Collection) -> None:
    first, second = upkeep.plan(island, Kind.EVALUATE), upkeep.plan(island, Kind.EVALUATE)
    assert first == second
    done(first)
    assert upkeep.plan(island, Kind.EVALUATE) != first


def test_a_calibration_is_kept_and_says_how_far_it_is(island: Collection) -> None:
    job = done(upkeep.plan(island, Kind.CALIBRATE))
    assert (job.status, job.error) == ("done", "")
    assert Calibration.objects.get().threshold == pytest.approx(job.report["threshold"], abs=1e-3)


@pytest.fixture
def grown(island: Collection) -> Collection:
    """The collection with as many chunks as are worth a threshold, an hour after its ingest."""
    Census.objects.filter(collection=island).update(chunks=calibration.FEWEST_CHUNKS)
    island.ingests.update(ended=now() - timedelta(hours=1))
    return island


def test_a_collection_that_came_to_rest_is_calibrated_once(
    grown: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rung: list[Ingest] = []
    monkeypatch.setattr("agents.steps.sweeper.jobs.enqueue", rung.append)
    assert [calibrate_collections(), calibrate_collections()] == [1, 0]
    assert done(rung[0]).status == "done"
    grown.ingests.update(ended=now() - timedelta(hours=1))
    Calibration.objects.update(report={"chunks": calibration.FEWEST_CHUNKS})
    assert calibrate_collections() == 0

    # Twice as large as it was, but not before its ingest is some time ago.
    Census.objects.update(chunks=2 * calibration.FEWEST_CHUNKS)
    later = ran_later(grown)
    assert calibrate_collections() == 0
    Ingest.objects.filter(pk=later.pk).update(ended=now() - upkeep.REST)
    assert calibrate_collections() == 1


def ran_later(collection: Collection) -> Ingest:
    """An ingest that has just ended."""
    return Ingest.objects.create(collection=collection, name="later", status="done", ended=now())


def test_what_could_not_be_calibrated_waits_for_the_next_ingest(grown: Collection) -> None:
    (job,) = upkeep.plan_calibrations()
    cancel(job.pk)
    Ingest.objects.filter(pk=job.pk).update(ended=now() - timedelta(minutes=30))
    assert upkeep.plan_calibrations() == []
    later = ran_later(grown)
    Ingest.objects.filter(pk=later.pk).update(ended=now() - timedelta(minutes=20))
    assert len(upkeep.plan_calibrations()) == 1


def test_nothing_is_calibrated_that_is_small_or_busy_or_has_a_threshold_in_the_settings(
    grown: Collection, settings: Settings
) -> None:
    settings.CALIBRATES_BY_ITSELF = False
    assert upkeep.plan_calibrations() == []
    settings.CALIBRATES_BY_ITSELF = True
    running = Ingest.objects.create(collection=grown, name="more", status="running")
    assert upkeep.plan_calibrations() == []
    running.delete()
    Census.objects.update(chunks=calibration.FEWEST_CHUNKS - 1)
    assert upkeep.plan_calibrations() == []
    Census.objects.update(chunks=calibration.FEWEST_CHUNKS)
    assert len(upkeep.plan_calibrations()) == 1


def test_progress_is_told_without_items(island: Collection) -> None:
    job = upkeep.plan(island, Kind.EVALUATE)
    job.report = {"done": 3, "total": 12}
    told = progress(job)
    assert (told.finished, told.items) == (3, 12)


def test_vectors_that_cannot_be_made_say_why_and_are_not_tried_again(island: Collection) -> None:
    job = done(upkeep.plan(island, Kind.EVALUATE))
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error == "'island' has no golden question."


def test_golden_questions_are_asked_and_what_came_of_each_is_kept(island: Collection) -> None:
    for question, sources in (("When does the foghorn sound?", ["fog.md"]), ("Moby-Dick?", [])):
        GoldenQuestion.objects.create(collection=island, question=question, sources=sources)
    report = done(upkeep.plan(island, Kind.EVALUATE)).report
    assert report["figures"]["recall@5"] == 1
    assert {row["question"]: row["rank"] for row in report["rows"]}["Moby-Dick?"] is None


def test_vectors_are_made_and_compared(island: Collection) -> None:
    job = done(upkeep.plan(island, Kind.REINDEX))
    assert (job.status, job.report["after"]) == ("done", island.embedding_model)


def test_an_archive_comes_in_pieces_and_only_the_latest_is_kept(
    island: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PIECE", 1000)
    done(upkeep.plan(island, Kind.EXPORT))
    job = done(upkeep.plan(island, Kind.EXPORT))

    pieces = [bytes(piece.body) for piece in job.pieces.all()]
    assert len(pieces) > 1
    assert sum(map(len, pieces)) == job.report["bytes"]
    assert not Piece.objects.exclude(ingest=job).exists()
    assert "manifest.json" in ZipFile(BytesIO(b"".join(pieces))).namelist()


def test_a_job_that_was_called_off_does_nothing(island: Collection) -> None:
    job = upkeep.plan(island, Kind.CALIBRATE)
    cancel(job.pk)
    assert done(job).status == "cancelled"
    assert not Calibration.objects.exists()


def test_a_document_moves_with_all_that_is_its_own(island: Collection) -> None:
    document = Document.objects.get()
    state(document, "foghorn")
    Reliance.objects.create(turn=uuid.uuid4(), document=document.pk, version=1)
    coast = Collection.objects.create(name="coast")

    (job,) = upkeep.plan_move([document], coast)
    assert done(job).report == {"moved": 1, "to": "coast", "refused": []}
    assert done(job).status == "done"

    document.refresh_from_db()
    assert document.collection == coast
    assert search("foghorn", collections=["island"]).passages == ()
    (passage,) = search("foghorn", collections=["coast"]).passages
    assert passage.document_id == document.pk
    assert len(answers_citing(document)) == 1
    assert version(document, 1).content == document.content
    assert Relation.objects.get().subject.collection == coast
    assert not island.entities.exists()
    archive = done(upkeep.plan(coast, Kind.EXPORT))
    assert archive.report["counts"]["documents"] == 1
    ran(ingestion.reingest(document))
    assert Document.objects.get().collection == coast


def test_a_document_does_not_move_onto_another(island: Collection) -> None:
    ran(upload(FOG + b" Thrice."))
    ran(ingestion.plan("coast", uploads=[("fog.md", b"Another page on fog and its horn.")]))
    document = Document.objects.get(collection=island)
    (job,) = upkeep.plan_move([document], Collection.objects.get(name="coast"))

    assert done(job).status == "failed"
    assert job.error == "fog.md: coast has a document of the same source"
    document.refresh_from_db()
    assert document.collection == island


def test_a_job_of_a_dead_worker_is_done_by_the_next(island: Collection) -> None:
    job = upkeep.plan(island, Kind.CALIBRATE)
    Ingest.objects.filter(pk=job.pk).update(
        status="running", token=uuid.uuid4(), attempts=1, lease_until=now(), worker="gone"
    )
    assert done(job).status == "done"
