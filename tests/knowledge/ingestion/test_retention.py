"""Tidying: what jobs of long ago keep, and what nobody may lose by its going."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils.timezone import now

from knowledge import ingestion
from knowledge.errors import NothingToIngest
from knowledge.ingestion import completion
from knowledge.ingestion.jobs import JobError, drop_expired, retry
from knowledge.ingestion.plan import reingest
from knowledge.models import Document, Ingest, Item
from tests.knowledge.jobs import FOG, ran, upload

pytestmark = pytest.mark.django_db

EMPTY = b""
ROOM = "---\ntitle: Rooms\n---\nThe lighthouse has four rooms."


@pytest.fixture(autouse=True)
def untidy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that leave tidying to the test."""
    monkeypatch.setattr(completion, "drop_expired", lambda: 0)


def aged(job: Ingest, days: int) -> Ingest:
    """The job as if it had been done so many days ago."""
    Ingest.objects.filter(pk=job.pk).update(ended=now() - timedelta(days=days))
    job.refresh_from_db()
    return job


def nightly(folder: Path, days: int) -> Ingest:
    """A job over the folder, so many days ago."""
    job = ingestion.plan("island", paths=[folder])
    ran(job)
    return aged(job, days)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two pages."""
    root = tmp_path / "pages"
    root.mkdir()
    (root / "fog.md").write_bytes(FOG)
    (root / "room.md").write_text(ROOM)
    return root


def test_of_nightly_runs_only_the_latest_old_one_keeps_its_items(folder: Path) -> None:
    jobs = [nightly(folder, days) for days in (60, 50, 40)]
    assert drop_expired() == 4
    assert [job.items.count() for job in jobs] == [0, 0, 2]
    assert Ingest.objects.count() == 3
    assert drop_expired() == 0


def test_a_month_of_nightly_runs_can_be_looked_into(folder: Path) -> None:
    jobs = [nightly(folder, days) for days in (31, 29, 1)]
    assert drop_expired() == 2
    assert [job.items.count() for job in jobs] == [0, 2, 2]


def test_a_document_can_still_be_taken_in_anew_from_its_file(folder: Path) -> None:
    nightly(folder, 90)
    (folder / "room.md").unlink()
    nightly(folder, 80)
    nightly(folder, 70)
    assert drop_expired() == 3
    (item,) = reingest(Document.objects.get()).items.all()
    assert (item.kind, item.location) == (Item.Kind.FILE, str(folder / "fog.md"))


def test_a_folder_that_moved_is_still_known_by_its_name(folder: Path, tmp_path: Path) -> None:
    nightly(folder, 90)
    nightly(folder, 80)
    drop_expired()
    other = tmp_path / "other" / "pages"
    other.mkdir(parents=True)
    (other / "sea.md").write_text("---\ntitle: Sea\n---\nThe sea is deep.")
    with pytest.raises(NothingToIngest, match="is in the collection"):
        ingestion.plan("island", paths=[other])


def test_a_job_without_its_items_cannot_be_tried_again_and_nothing_is_deleted(
    folder: Path,
) -> None:
    (folder / "broken.json").write_text("{")
    first = nightly(folder, 90)
    (folder / "broken.json").unlink()
    nightly(folder, 80)
    assert retry(first.pk) == 1
    ran(first)
    aged(first, 90)
    drop_expired()
    assert retry(first.pk) == 0
    assert Document.objects.count() == 2


def test_an_upload_that_was_skipped_can_be_tried_again_for_a_week(folder: Path) -> None:
    late, new = upload(EMPTY, "late.md"), upload(EMPTY, "new.md")
    for job, days in ((late, 8), (new, 6)):
        ingestion.run(job.pk)
        aged(job, days)
    drop_expired()
    assert [job.items.get().body is None for job in (late, new)] == [True, False]
    assert [retry(job.pk) for job in (late, new)] == [0, 1]


def test_what_a_sitemap_named_last_is_kept() -> None:
    jobs = [upload() for _ in range(2)]
    listing = {"kind": Item.Kind.URL, "status": Item.Status.LISTED, "origin": "https://a.example/"}
    for job, body in zip(jobs, (None, b"{}"), strict=True):
        job.items.update(**listing, body=body)
        aged(job, 90)
    assert drop_expired() == 1
    assert bytes(jobs[1].items.get().body or b"") == b"{}"


def test_an_old_job_that_is_tried_again_just_now_keeps_what_it_needs() -> None:
    job = upload(EMPTY)
    ingestion.run(job.pk)
    aged(job, 90)
    retry(job.pk)
    assert drop_expired() == 0
    assert job.items.get().body is not None
    with pytest.raises(JobError):
        retry(job.pk)


def test_an_ingest_tidies_up_after_those_of_long_ago(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [nightly(folder, days) for days in (60, 50)]
    monkeypatch.undo()
    ran(ingestion.plan("island", paths=[folder]))
    assert [job.items.count() for job in jobs] == [0, 0]


def test_only_the_first_job_done_on_a_day_has_it_tidied(folder: Path) -> None:
    old = upload()
    ran(old)
    aged(old, 90)
    ran(upload(b"# Ferry\n\nIt sails at nine.", "ferry.md"))
    ran(upload(b"# Sea\n\nIt is deep.", "sea.md"))
    assert drop_expired() == 0
    Ingest.objects.order_by("-created").first().delete()  # type: ignore[union-attr]
    assert drop_expired() == 1
