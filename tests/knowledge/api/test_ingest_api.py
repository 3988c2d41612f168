"""The API of the jobs: how far each is, what became of its items, and trying it again."""

from http import HTTPStatus
from uuid import uuid4

import pytest
from django.test import Client

from knowledge import ingestion
from knowledge.models import Document, Ingest, Item
from tests.knowledge.desk import FERRY, FOG, file, upload

pytestmark = pytest.mark.django_db


@pytest.fixture
def job(staff: Client, nobody: None) -> Ingest:
    """A job of three files that nobody has begun."""
    names = ("fog.md", "ferry.md", "photo.md")
    contents = (FOG, FERRY, b"\x89PNG\x00")
    answer = upload(staff, *map(file, names, contents), wait="false")
    return Ingest.objects.get(pk=answer.json()["id"])


def test_progress_counts_items_by_what_became_of_them(staff: Client, job: Ingest) -> None:
    ingestion.run(job.pk)
    body = staff.get(f"/api/ingests/{job.pk}/").json()
    assert body["status"] == "done"
    assert body["progress"] | {"outcomes": None, "chunks": 0} == {
        "items": 3,
        "finished": 3,
        "outcomes": None,
        "documents": 2,
        "chunks": 0,
        "current": "",
        "rate": 0.0,
        "seconds_left": None,
    }
    assert body["progress"]["outcomes"] == {"new": 2, "skipped": 1}


def test_items_come_in_pages_and_by_status(staff: Client, job: Ingest) -> None:
    ingestion.run(job.pk)
    address = f"/api/ingests/{job.pk}/"
    page = staff.get(address, {"page_size": 2}).json()["items"]
    assert (page["count"], len(page["results"])) == (3, 2)
    assert len(staff.get(page["next"]).json()["items"]["results"]) == 1
    skipped = staff.get(address, {"status": "skipped"}).json()["items"]["results"]
    assert [item["origin"] for item in skipped] == ["photo.md"]
    refused = staff.get(address, {"status": "lost"})
    assert (refused.status_code, set(refused.json()["fields"])) == (400, {"status"})


def test_jobs_are_listed_by_status(staff: Client, job: Ingest) -> None:
    def listed(**query: str) -> list[str]:
        return [each["id"] for each in staff.get("/api/ingests/", query).json()["results"]]

    assert listed() == listed(status="queued", collection="island") == [str(job.pk)]
    assert listed(status="done") == []
    assert staff.get("/api/ingests/", {"collection": "none"}).json()["code"] == "unknown_collection"


def test_a_cancelled_job_goes_on_when_it_is_tried_again(
    staff: Client, job: Ingest, request: pytest.FixtureRequest
) -> None:
    cancelled = staff.post(f"/api/ingests/{job.pk}/cancel/")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert ingestion.run(job.pk) is None
    request.getfixturevalue("worker")
    retried = staff.post(f"/api/ingests/{job.pk}/retry/")
    assert (retried.status_code, retried.json()["status"]) == (202, "done")
    assert Document.objects.count() == 2


def test_what_failed_is_tried_again_and_what_is_in_is_not(
    staff: Client, job: Ingest, request: pytest.FixtureRequest
) -> None:
    ingestion.run(job.pk)
    Item.objects.filter(origin="photo.md").update(body=b"# Photo\n\nA photograph of the harbour.")
    before = dict(Document.objects.values_list("source", "updated"))
    request.getfixturevalue("worker")
    answer = staff.post(f"/api/ingests/{job.pk}/retry/")
    assert (answer.status_code, answer.json()["status"]) == (202, "done")
    after = dict(Document.objects.values_list("source", "updated"))
    assert after.keys() - before.keys() == {"photo.md"}
    assert all(after[source] == updated for source, updated in before.items())


def test_a_job_with_nothing_left_to_do_cannot_be_tried_again(staff: Client, worker: None) -> None:
    done = upload(staff, file("fog.md")).json()["id"]
    answer = staff.post(f"/api/ingests/{done}/retry/")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "nothing to try again" in answer.json()["detail"]
    assert staff.post(f"/api/ingests/{done}/cancel/").json()["status"] == "done"


def test_an_open_job_cannot_be_tried_again(staff: Client, job: Ingest) -> None:
    answer = staff.post(f"/api/ingests/{job.pk}/retry/")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert staff.post(f"/api/ingests/{uuid4()}/retry/").status_code == HTTPStatus.NOT_FOUND
