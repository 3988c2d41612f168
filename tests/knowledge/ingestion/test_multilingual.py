"""The vectors of the second model: made at ingest, and for what was there before."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding import Vectors
from knowledge.embedding.local import MULTILINGUAL
from knowledge.errors import EmbeddingUnavailable
from knowledge.identifiers import MULTILINGUAL_MODEL
from knowledge.ingestion import backfill, multilingual
from knowledge.models import ChunkVector, Collection, Copy, DocumentVector, Ingest, SectionVector
from tests.knowledge.islands import island
from tests.knowledge.jobs import ran, upload
from tests.knowledge.polyglot import Polyglot

pytestmark = pytest.mark.django_db(transaction=True)

CHUNKS = 8  # of the island


def counts() -> list[int]:
    """How many vectors there are of chunks, sections and documents."""
    tables = (ChunkVector, SectionVector, DocumentVector)
    return [table.objects.filter(model=MULTILINGUAL_MODEL).count() for table in tables]


def planned() -> Ingest:
    """The job that fills in what an island lacks."""
    island()
    Copy.objects.all().delete()  # of what has changed since: documents would be made of them
    (job,) = multilingual.plan_missing()
    return job


def unavailable(texts: object, **_: object) -> Vectors:
    raise EmbeddingUnavailable("The multilingual model is not installed.")


def test_an_ingest_makes_both_models_vectors(polyglot: Polyglot) -> None:
    job = upload()
    assert not ran(job).warnings
    assert counts() == [1, 1, 1]
    assert [kind for kind, _ in polyglot.asked] == ["passage"]
    assert job.status == Ingest.Status.DONE


def test_a_changed_document_gets_new_ones(polyglot: Polyglot) -> None:
    ran(upload())
    ran(upload(b"---\ntitle: Fog\n---\nThe foghorn sounds three times."))
    assert counts() == [1, 1, 1]
    assert "three times" in polyglot.asked[-1][1]


def test_none_are_made_while_the_setting_is_off(polyglot: Polyglot, settings: Settings) -> None:
    settings.CROSS_LINGUAL = False
    ran(upload())
    assert multilingual.plan_missing() == []
    assert counts() == [0, 0, 0]


def test_none_are_made_beside_those_of_an_endpoint(polyglot: Polyglot) -> None:
    island()
    Collection.objects.update(embedding_model="wide@acme")
    assert multilingual.plan_missing() == []


def test_what_was_there_before_is_filled_in_by_a_job_once(polyglot: Polyglot) -> None:
    job = planned()
    assert multilingual.plan_missing() == []  # one is open
    assert job.name == "vectors of multilingual-e5-small"
    ran(job)
    assert job.status == Ingest.Status.DONE
    assert counts() == [CHUNKS, CHUNKS, 4]
    assert multilingual.plan_missing() == []


def test_a_job_that_was_interrupted_goes_on_with_the_rest(
    polyglot: Polyglot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "CHUNKS_AT_ONCE", 3)

    def fail_later(texts: Sequence[str], **options: Any) -> Vectors:
        if len(polyglot.asked) >= 6:
            raise EmbeddingUnavailable("The machine is out of memory.")
        return polyglot(texts, **options)

    job = planned()
    monkeypatch.setattr(MULTILINGUAL, "encode", fail_later)
    with pytest.raises(EmbeddingUnavailable):
        ingestion.run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.error) == (Ingest.Status.QUEUED, "The machine is out of memory.")
    assert counts()[0] == 6
    polyglot.asked.clear()
    monkeypatch.setattr(MULTILINGUAL, "encode", polyglot)
    ran(job)
    assert len(polyglot.asked) == CHUNKS - 6
    assert counts() == [CHUNKS, CHUNKS, 4]


def test_how_far_it_is_is_shown(polyglot: Polyglot, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.setattr("knowledge.ingestion.job_lease.BEAT_SECONDS", -1.0)
    monkeypatch.setattr(backfill, "CHUNKS_AT_ONCE", 4)
    job = planned()

    def watched(texts: Sequence[str], **options: Any) -> Vectors:
        said.append(Ingest.objects.get(pk=job.pk).current)
        return polyglot(texts, **options)

    monkeypatch.setattr(MULTILINGUAL, "encode", watched)
    ran(job)
    assert said[-1] == "vectors of multilingual-e5-small: 4 of 8"


def test_documents_are_taken_in_without_the_package_and_the_report_says_what_lacks(
    polyglot: Polyglot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(MULTILINGUAL, "encode", unavailable)
    job = upload()
    report = ran(job)
    assert job.status == Ingest.Status.DONE
    assert [warning.reason for warning in report.warnings] == [
        "The multilingual model is not installed."
    ]
    assert counts() == [0, 0, 0]


def test_a_background_job_without_the_package_fails_with_the_reason(
    polyglot: Polyglot, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = planned()
    monkeypatch.setattr(MULTILINGUAL, "encode", unavailable)
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable):
            ingestion.run(job.pk)
    job.refresh_from_db()
    assert job.status == Ingest.Status.FAILED
    assert "not installed" in job.error
