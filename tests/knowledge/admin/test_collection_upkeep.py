"""The buttons of a collection's page: a job each, done once, progress and result on the page."""

from http import HTTPStatus

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from knowledge.models import Collection, GoldenQuestion, Ingest
from knowledge.tasks import ingest
from tests.knowledge.jobs import ran, upload
from tests.knowledge.pages import address, shown

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def editor(client: Client) -> User:
    """Who may change collections, logged in."""
    user = User.objects.create_user("editor", is_staff=True)
    rights = ("view_collection", "change_collection", "view_document")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(user)
    return user


@pytest.fixture
def island(editor: User) -> Collection:
    """A collection with a document and a golden question that nothing answers."""
    ran(upload())
    collection = Collection.objects.get()
    GoldenQuestion.objects.create(
        collection=collection, question="Where do I park?", sources=["gone.md"]
    )
    return collection


def press(client: Client, collection: Collection, kind: str, **body: str) -> None:
    """Press a button."""
    button = reverse("admin:knowledge_collection_upkeep", args=[collection.pk, kind])
    told = client.post(button, body)
    assert told["Location"] == f"{address(collection)}#upkeep"


def test_pressed_twice_it_is_done_once_and_the_result_stays(
    client: Client, island: Collection
) -> None:
    press(client, island, "evaluate")
    press(client, island, "evaluate")
    job = Ingest.objects.exclude(kind="ingest").get()
    page = shown(client, address(island))
    assert f'data-refresh="{address(island)}"' in page
    assert "waits for a worker" in page

    Ingest.objects.filter(pk=job.pk).update(report={"done": 3, "total": 12})
    assert 'value="3" max="12"' in shown(client, address(island))

    ingest(str(job.pk))
    page = shown(client, address(island))
    assert "data-refresh" not in page
    assert "0 of 1" in page
    assert "gone.md is not found" in page


def test_a_job_is_stopped_by_its_button(client: Client, island: Collection) -> None:
    press(client, island, "calibrate")
    press(client, island, "calibrate", cancel="yes")
    assert Ingest.objects.get(kind="calibrate").status == "cancelled"


def test_an_archive_is_downloaded(client: Client, island: Collection) -> None:
    archive = reverse("admin:knowledge_collection_archive", args=[island.pk])
    assert client.get(archive).status_code == HTTPStatus.NOT_FOUND
    press(client, island, "export")
    ingest(str(Ingest.objects.get(kind="export").pk))

    assert archive in shown(client, address(island))
    response = client.get(archive)
    assert response["Content-Disposition"] == 'attachment; filename="island.docent"'
    assert response.getvalue().startswith(b"PK")


def test_a_model_that_is_none_is_refused_at_once(client: Client, island: Collection) -> None:
    press(client, island, "reindex", model="no-such-thing@nowhere")
    assert "no provider" in shown(client, address(island))
    assert not Ingest.objects.filter(kind="reindex").exists()


def test_who_may_only_view_has_no_buttons(client: Client, editor: User, island: Collection) -> None:
    editor.user_permissions.remove(Permission.objects.get(codename="change_collection"))
    assert "formaction" not in shown(client, address(island))
    for name, kind in (("upkeep", ["export"]), ("archive", [])):
        page = reverse(f"admin:knowledge_collection_{name}", args=[island.pk, *kind])
        refused = client.post(page) if kind else client.get(page)
        assert refused.status_code == HTTPStatus.FORBIDDEN
