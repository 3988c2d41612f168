"""The admin of the documents: what its pages show, what they let staff do, and nothing hostile."""

import re
from http import HTTPStatus

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from knowledge import ingestion
from knowledge.models import Document, Ingest, Item, Receipt, Reliance
from knowledge.versions import LINES_COMPARED, TooLong, differences
from tests import factories
from tests.knowledge.pages import SCRIPT, SEARCH, address, shown

pytestmark = pytest.mark.django_db

ADD = "/admin/knowledge/document/add/"
# What a browser loads from where, in the pages' HTML.
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]+)\"")


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def clerk() -> Client:
    """A browser whose user may look at documents and no more."""
    user = User.objects.create_user("clerk", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_document"))
    client = Client()
    client.force_login(user)
    return client


def test_the_page_to_add_documents_knows_the_collections_and_where_to_send(staff: Client) -> None:
    factories.collection("handbook", documents=0)
    page = shown(staff, ADD, collection="handbook")
    assert '<option value="handbook" selected>' in page
    assert '<option value="+">A new collection…</option>' in page
    assert f'data-api="{reverse("documents")}"' in page
    assert "csrfmiddlewaretoken" in page
    assert ".zip" in page


def test_documents_go_into_no_collection_that_was_not_chosen(staff: Client) -> None:
    for name in ("handbook", "manual"):
        factories.collection(name, documents=0)
    page = shown(staff, ADD, collection="hand-book")
    assert '<option value="">choose one</option>' in page
    assert "hand-book" not in page


def test_the_page_to_add_documents_follows_the_latest_jobs(staff: Client) -> None:
    job = ingestion.plan("island", uploads=[(SCRIPT, b"x")])
    page = shown(staff, ADD)
    assert f'src="{reverse("ingest", args=[job.pk])}"' in page
    assert SCRIPT not in page


def test_a_collection_in_the_address_cannot_break_the_page(staff: Client) -> None:
    assert SCRIPT not in shown(staff, ADD, collection=f'"{SCRIPT}')


def test_who_may_only_look_sees_documents_and_gives_no_orders(
    clerk: Client, document: Document
) -> None:
    page = shown(clerk, address(document))
    assert "Take in anew" not in page
    assert "Add documents" not in shown(clerk, reverse("admin:knowledge_document_changelist"))
    assert clerk.get(ADD).status_code == HTTPStatus.FORBIDDEN
    for path in (address(document, "reingest"), address(document, "delete")):
        assert clerk.post(path, {"post": "yes"}).status_code == HTTPStatus.FORBIDDEN
    assert Document.objects.exists()
    assert not Ingest.objects.exists()


@pytest.mark.parametrize("path", [ADD, SEARCH])
def test_strangers_are_sent_to_the_login(path: str, client: Client) -> None:
    for user in (None, User.objects.create_user("visitor")):
        if user:
            client.force_login(user)
        answer = client.get(path)
        assert answer.status_code == HTTPStatus.FOUND
        assert answer["Location"].startswith(reverse("admin:login"))


def test_a_document_shows_its_chunks_with_section_tokens_and_neighbours(
    staff: Client, document: Document
) -> None:
    document.chunks.filter(number=2).update(page=7)
    page = shown(staff, address(document))
    assert "1 · Leave > Carry over" in page
    assert "9 tokens" in page
    assert "page 7" in page
    assert 'href="#chunk-2"' in page
    assert SCRIPT not in page


def test_chunks_of_a_book_come_in_pages_and_each_is_found(staff: Client) -> None:
    factories.collection("handbook")
    document = Document.objects.get()
    first = document.chunks.get(number=1)
    for number in range(3, 251):
        first.pk, first.number = None, number
        first.save(force_insert=True)
    assert 'id="chunk-100"' in shown(staff, address(document))
    assert 'id="chunk-250"' not in shown(staff, address(document))
    for query in ({"chunks": "3"}, {"chunk": "250"}, {"chunks": "99"}):
        assert 'id="chunk-250"' in shown(staff, address(document), **query)
    for wrong in ("x", "-1", "9" * 5000):
        shown(staff, address(document), chunks=wrong, chunk=wrong)


def test_a_document_lists_the_answers_that_relied_on_older_versions(
    staff: Client, document: Document
) -> None:
    page = shown(staff, address(document))
    assert "2 answers relied on it, 1 on an older version" in page
    for answer in Reliance.objects.all():
        assert reverse("admin:agents_envelope_change", args=[answer.turn]) in page


def test_a_change_is_shown_line_by_line_and_as_text(staff: Client, document: Document) -> None:
    page = shown(staff, address(document), change="2")
    assert "From version 1 to version 2" in page
    assert "<del>Unused days end in March.</del>" in page
    assert "<ins>Unused days end in April.</ins>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;!" in page
    assert SCRIPT not in page


@pytest.mark.parametrize("change", ["1", "9", "x", "-2", "9" * 5000])
def test_a_change_there_is_not_is_left_out(change: str, staff: Client, document: Document) -> None:
    assert "From version" not in shown(staff, address(document), change=change)


def test_texts_that_differ_all_over_are_not_compared_for_minutes() -> None:
    old, new = ("\n".join(f"{word} {n}" for n in range(LINES_COMPARED + 1)) for word in "ab")
    with pytest.raises(TooLong):
        differences(old, new)
    assert [line.kind for line in differences(f"{old}\nx", f"{old}\ny")] == [
        "gap", "same", "same", "gone", "added",
    ]  # fmt: skip
    assert differences(old, old) == []


def test_a_document_is_taken_in_anew_by_its_button_and_as_an_action(
    staff: Client, ingested: Document
) -> None:
    assert staff.get(address(ingested, "reingest")).status_code == HTTPStatus.FORBIDDEN
    answer = staff.post(address(ingested, "reingest"))
    job = Ingest.objects.first()
    assert job is not None
    assert answer["Location"] == address(job)
    assert job.status == Ingest.Status.DONE
    chosen = {"action": "take_in_anew", "_selected_action": [ingested.pk]}
    staff.post(reverse("admin:knowledge_document_changelist"), chosen)
    assert Ingest.objects.filter(status="done").count() == 3


@pytest.mark.parametrize("is_chosen", [True, False])
def test_deleting_documents_shows_the_way_to_the_receipt(
    is_chosen: bool, staff: Client, document: Document
) -> None:
    if is_chosen:
        path = reverse("admin:knowledge_document_changelist")
        body = {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"}
    else:
        path, body = address(document, "delete"), {"post": "yes"}
    page = staff.post(path, body, follow=True).content.decode()
    receipt = Receipt.objects.get()
    assert not Document.objects.exists()
    assert (receipt.by, receipt.removed["documents"]) == ("root", 1)
    assert f'href="{address(receipt)}">The receipt</a>' in page


def test_a_receipt_shows_what_went_and_which_answers_relied_on_it(
    staff: Client, document: Document
) -> None:
    Document.objects.update(title=SCRIPT, source=SCRIPT)
    staff.post(address(document, "delete"), {"post": "yes"})
    receipt = Receipt.objects.get()
    page = shown(staff, address(receipt))
    assert SCRIPT not in page
    assert "Chunks removed" in page
    for turn in receipt.answers:
        assert turn in page
    assert staff.post(address(receipt, "delete"), {"post": "yes"}).status_code == 403


def test_a_job_is_shown_by_what_follows_it(staff: Client) -> None:
    job = ingestion.plan("island", uploads=[(SCRIPT, b"\0")])
    ingestion.run(job.pk)
    page = shown(staff, address(job))
    assert f'<ingest-progress class="card" src="{reverse("ingest", args=[job.pk])}"' in page
    assert SCRIPT not in page
    assert "1 of 1" in shown(staff, reverse("admin:knowledge_ingest_changelist"))
    assert Item.objects.get().status == Item.Status.SKIPPED


def test_no_page_loads_anything_from_elsewhere(staff: Client, ingested: Document) -> None:
    job = Ingest.objects.get()
    paths = [ADD, f"{SEARCH}?q=fog", address(ingested), address(job), address(ingested.collection)]
    for path in paths:
        loaded = LOADED.findall(shown(staff, path))
        assert loaded
        assert [each for each in loaded if not each.startswith("/")] == []


def test_the_start_page_leads_those_who_may_to_where_documents_are_added(
    staff: Client, clerk: Client
) -> None:
    link = f'href="{ADD}">Add documents</a>'
    assert link in shown(staff, reverse("start"))
    assert link not in shown(clerk, reverse("start"))
    assert link not in shown(Client(), reverse("start"))
