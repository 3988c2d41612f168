"""The list of documents narrowed, and what staff have done with documents."""

import json
import uuid
from datetime import timedelta
from http import HTTPStatus

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from knowledge import ingestion
from knowledge.models import Collection, Document, Ingest, Item, Reliance, Version
from knowledge.tasks import ingest
from tests import factories
from tests.knowledge.pages import address, shown

pytestmark = pytest.mark.django_db
LIST = "/admin/knowledge/document/"


@pytest.fixture
def editor(client: Client) -> User:
    """Who may change documents, logged in."""
    user = User.objects.create_user("editor", is_staff=True)
    rights = ("view_document", "change_document", "add_document", "view_ingest")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client.force_login(user)
    return user


@pytest.fixture
def shelf(editor: User) -> dict[str, Document]:
    """Documents by their titles, each with something of its own."""
    body = factories.collection("handbook", documents=4)
    rows = list(body.documents.order_by("source"))
    for row, title in zip(rows, ("cited", "failed", "old", "edited"), strict=True):
        row.title = title
    cited, failed, old, edited = rows
    old.updated = now() - timedelta(days=400)
    edited.edits = {"title": {"said": "edited", "over": ["x"]}}
    cited.origin = "https://example.org/cited"
    Document.objects.bulk_update(rows, ["title", "updated", "edits", "origin"])
    Reliance.objects.create(turn=uuid.uuid4(), document=cited.pk, version=1)
    early = Reliance.objects.create(turn=uuid.uuid4(), document=old.pk, version=1)
    Reliance.objects.filter(pk=early.pk).update(created=now() - timedelta(days=40))
    job = Ingest.objects.create(collection=body, name="x")
    for number, row in enumerate((failed, old), start=1):
        Item.objects.create(
            ingest=job, number=number, kind="file", origin=row.origin, status="skipped"
        )
    Item.objects.create(ingest=job, number=3, kind="file", origin=old.origin, status="changed")
    return {row.title: row for row in rows}


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ({"status": "failed"}, {"failed"}),
        ({"status": "stale"}, {"old"}),
        ({"status": "edited"}, {"edited"}),
        ({"taken": "week"}, {"cited", "failed", "edited"}),
        ({"taken": "year"}, {"old"}),
        ({"cited": "lately"}, {"cited"}),
        ({"cited": "before"}, {"old"}),
        ({"cited": "never"}, {"failed", "edited"}),
        ({"format": "web"}, {"cited"}),
        ({"format": ".md"}, {"failed", "old", "edited"}),
    ],
)
def test_the_list_is_narrowed(
    client: Client, shelf: dict[str, Document], query: dict[str, str], titles: set[str]
) -> None:
    found = client.get(LIST, query).context["cl"].result_list
    assert {document.title for document in found} == titles


def test_the_most_cited_come_first(client: Client, shelf: dict[str, Document]) -> None:
    found = client.get(LIST, {"o": "-5"}).context["cl"].result_list
    assert (found[0].title, found[0].citations) == ("cited", 1)


def test_the_list_asks_no_more_for_many(client: Client, shelf: dict[str, Document]) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        return len(captured)

    few = queries()
    factories.collection("other", documents=9)
    assert queries() == few


def test_an_edit_is_made_on_the_page_and_old_answers_keep_their_version(
    client: Client, shelf: dict[str, Document]
) -> None:
    document = shelf["cited"]
    values = {"title": "Days of leave", "audience": "staff", "description": "Of leave."}
    client.post(address(document, "edit"), values)
    document.refresh_from_db()

    assert {name: getattr(document, name) for name in values} == values
    assert (document.version, Version.objects.get().title) == (2, "cited")
    assert "Version 1, as it was" in shown(client, address(document), version="1")
    assert "“cited”" in shown(client, address(document))


@pytest.mark.django_db(transaction=True)
def test_documents_are_moved_by_a_job(client: Client, editor: User) -> None:
    job = ingestion.plan("island", uploads=[("fog.md", b"The foghorn sounds twice.")])
    ingestion.run(job.pk)
    document = Document.objects.get()
    coast = Collection.objects.create(name="coast")
    body = {"action": "move_chosen", "_selected_action": [document.pk]}

    asked = client.post(LIST, body)
    assert '<option value="coast">' in asked.text
    told = client.post(LIST, body | {"confirmed": "yes", "target": "coast"})
    job = Ingest.objects.get(kind="move")
    assert told["Location"] == reverse("admin:knowledge_ingest_change", args=[job.pk])
    ingest(str(job.pk))

    document.refresh_from_db()
    assert document.collection == coast


def test_the_audience_of_many_is_set_at_once(client: Client, shelf: dict[str, Document]) -> None:
    body = {
        "action": "set_audience",
        "_selected_action": [each.pk for each in shelf.values()],
        "confirmed": "yes",
        "audience": "staff",
    }
    client.post(LIST, body)
    assert set(Document.objects.values_list("audience", flat=True)) == {"staff"}


def test_an_export_can_be_taken_in_again(client: Client, shelf: dict[str, Document]) -> None:
    chosen = [shelf["cited"].pk, shelf["old"].pk]
    response = client.post(LIST, {"action": "export_chosen", "_selected_action": chosen})
    lines = [json.loads(line) for line in response.getvalue().decode().splitlines()]
    assert {line["title"] for line in lines} == {"cited", "old"}
    assert {line["content"] for line in lines} == {"# Holidays"}


def test_many_are_taken_in_again_by_one_job(client: Client, shelf: dict[str, Document]) -> None:
    chosen = [each.pk for each in shelf.values()]
    client.post(LIST, {"action": "take_in_anew", "_selected_action": chosen})
    assert Ingest.objects.exclude(name="x").get().items.count() == 4


def test_who_may_only_view_has_no_buttons(client: Client, shelf: dict[str, Document]) -> None:
    editor = User.objects.get(username="editor")
    rights = ("change_document", "add_document")
    editor.user_permissions.remove(*Permission.objects.filter(codename__in=rights))
    document = shelf["cited"]

    page = shown(client, address(document))
    assert "formaction" not in page
    assert 'value="move_chosen"' not in shown(client, LIST)
    for name in ("edit", "move", "reingest"):
        refused = client.post(address(document, name), {"title": "x", "target": "handbook"})
        assert refused.status_code == HTTPStatus.FORBIDDEN
    document.refresh_from_db()
    assert document.title == "cited"
