"""Sources over HTTP: followed, read, paused and followed no more."""

from http import HTTPStatus

import pytest
from celery import current_app
from django.contrib.auth.models import User
from django.test import Client

from knowledge.models import Ingest, Source

pytestmark = pytest.mark.django_db
ADDRESS = "https://docs.test/handbook.git"


@pytest.fixture
def staff(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)
    client.force_login(User.objects.create_superuser("root"))
    return client


def test_a_repository_is_followed_and_read_at_once(staff: Client) -> None:
    answer = staff.post(
        "/api/sources/",
        {"address": ADDRESS, "collection": "handbook", "folder": "docs", "minutes": 60},
        content_type="application/json",
    )
    assert answer.status_code == HTTPStatus.CREATED
    body = answer.json()
    assert (body["kind"], body["folder"], body["minutes"]) == ("git", "docs", 60)
    (run,) = body["runs"]
    assert run["status"] == "queued"
    assert [each["id"] for each in staff.get("/api/sources/").json()["results"]] == [body["id"]]

    address = f"/api/sources/{body['id']}/"
    again = staff.post(f"{address}run/")
    assert (again.status_code, again.json()["code"]) == (HTTPStatus.CONFLICT, "already_read")
    Ingest.objects.update(status=Ingest.Status.DONE)
    assert staff.post(f"{address}run/").status_code == HTTPStatus.ACCEPTED

    paused = staff.patch(address, {"paused": True}, content_type="application/json").json()
    assert (paused["paused"], paused["minutes"], len(paused["runs"])) == (True, 60, 2)
    assert staff.delete(address).json()["address"] == ADDRESS
    assert (Source.objects.count(), Ingest.objects.count()) == (0, 2)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"address": "/srv/handbook.git"}, "can be named at the command line"),
        ({"address": "https://u:p@docs.test/x.git"}, "without a name, password"),
        ({"address": ADDRESS, "folder": "../x"}, "within the repository"),
        ({"address": ADDRESS, "branch": "--force"}, "no name of a branch"),
        ({"address": ADDRESS, "minutes": 1}, "greater than or equal to 5"),
        ({"address": ADDRESS, "collection": "No Name"}, "No Name"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    staff: Client, sent: dict[str, object], reason: str
) -> None:
    answer = staff.post("/api/sources/", sent, content_type="application/json")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert reason in str(answer.json())
    assert not Source.objects.exists()


def test_the_same_source_is_followed_once(staff: Client) -> None:
    sent = {"address": ADDRESS}
    assert staff.post("/api/sources/", sent, content_type="application/json").status_code == 201
    twice = staff.post("/api/sources/", sent, content_type="application/json")
    assert twice.json()["code"] == "known_source"
    assert twice.status_code == HTTPStatus.CONFLICT


def test_the_admin_refuses_what_could_never_be_read(staff: Client) -> None:
    staff.post("/api/sources/", {"address": ADDRESS}, content_type="application/json")
    source = Source.objects.get()
    form = {"collection": source.collection_id, "every": "6:00:00", "patterns": "*.md\n*.rst"}
    page = staff.post("/admin/knowledge/source/add/", form | {"address": "/srv/handbook.git"})
    assert "only be named at the command line" in page.content.decode()
    added = staff.post("/admin/knowledge/source/add/", form | {"address": f"{ADDRESS}/x"})
    assert added.status_code == HTTPStatus.FOUND
    new = Source.objects.exclude(pk=source.pk).get()
    assert (new.kind, new.patterns, str(new.every)) == ("git", ["*.md", "*.rst"], "6:00:00")
    changed = staff.post(f"/admin/knowledge/source/{new.pk}/change/", form | {"paused": "on"})
    assert changed.status_code == HTTPStatus.FOUND
    new.refresh_from_db()
    assert (new.paused, new.address) == (True, f"{ADDRESS}/x")
    assert "Runs" in staff.get(f"/admin/knowledge/source/{source.pk}/change/").content.decode()
