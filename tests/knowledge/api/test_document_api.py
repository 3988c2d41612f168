"""The API of the documents: who may use it, what it tells of each, and what a deletion leaves."""

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from knowledge.models import Document, Receipt, Reliance
from tests import factories
from tests.knowledge.desk import file, upload

pytestmark = pytest.mark.django_db

# The same in every process that runs these tests.
NOBODYS = "00000000-0000-4000-8000-000000000000"
ADDRESSES = [
    "/api/documents/",
    "/api/documents/none/",
    "/api/documents/none/chunks/",
    "/api/documents/none/versions/",
    "/api/documents/none/versions/1/",
    "/api/documents/none/answers/",
    "/api/ingests/",
    f"/api/ingests/{NOBODYS}/",
    "/api/collections/",
    "/api/receipts/",
    f"/api/receipts/{NOBODYS}/",
]
ORDERS = [
    "/api/documents/",
    "/api/documents/none/reingest/",
    f"/api/ingests/{NOBODYS}/cancel/",
    f"/api/ingests/{NOBODYS}/retry/",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_nobody_reads_without_being_staff(address: str, client: Client) -> None:
    assert client.get(address).status_code == HTTPStatus.UNAUTHORIZED
    client.force_login(User.objects.create_user("visitor"))
    assert client.get(address).status_code == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("address", ORDERS)
def test_nobody_gives_orders_without_being_staff(address: str, client: Client) -> None:
    assert client.post(address).status_code == HTTPStatus.UNAUTHORIZED
    assert client.delete("/api/documents/none/").status_code == HTTPStatus.UNAUTHORIZED
    client.force_login(User.objects.create_user("visitor"))
    assert client.post(address).status_code == HTTPStatus.FORBIDDEN
    assert client.delete("/api/documents/none/").status_code == HTTPStatus.FORBIDDEN


def test_a_browser_needs_the_token_of_its_form(worker: None) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_superuser("root"))
    assert upload(browser, file("fog.md")).status_code == HTTPStatus.FORBIDDEN
    browser.get("/admin/knowledge/document/add/")
    token = browser.cookies["csrftoken"].value
    sent = browser.post(
        "/api/documents/", {"file": [file("fog.md")]}, headers={"X-CSRFToken": token}
    )
    assert sent.status_code == HTTPStatus.CREATED


def test_an_old_citation_can_be_checked_against_its_version(staff: Client, fog: Document) -> None:
    listed = staff.get(f"/api/documents/{fog.pk}/versions/").json()
    assert [(each["number"], each["is_latest"]) for each in listed] == [(2, True), (1, False)]
    assert listed[0]["replaced"] is None
    old = staff.get(f"/api/documents/{fog.pk}/versions/1/").json()
    new = staff.get(f"/api/documents/{fog.pk}/versions/2/").json()
    assert "sounds twice" in old["content"]
    assert "sounds three times" in new["content"]
    for number in (0, 3, 10**20):
        gone = staff.get(f"/api/documents/{fog.pk}/versions/{number}/")
        assert gone.status_code == HTTPStatus.NOT_FOUND


def test_a_document_lists_its_chunks_and_the_answers_that_cite_it(
    staff: Client, fog: Document
) -> None:
    (chunk,) = staff.get(f"/api/documents/{fog.pk}/chunks/").json()["results"]
    assert (chunk["number"], chunk["page"]) == (1, None)
    assert "three times" in chunk["text"]
    answers = f"/api/documents/{fog.pk}/answers/"
    assert [each["version"] for each in staff.get(answers).json()["results"]] == [1]
    assert staff.get(answers, {"version": 2}).json()["results"] == []
    assert staff.get(answers, {"version": "two"}).status_code == HTTPStatus.BAD_REQUEST


def test_a_deletion_is_answered_with_a_receipt_that_stays(staff: Client, fog: Document) -> None:
    answer = staff.delete(f"/api/documents/{fog.pk}/")
    receipt = answer.json()
    assert answer.status_code == HTTPStatus.OK
    assert (receipt["by"], receipt["collection"]) == ("ann", "island")
    assert [document["source"] for document in receipt["documents"]] == ["fog.md"]
    assert receipt["removed"]["documents"] == receipt["removed"]["chunks"] == 1
    assert receipt["answers"] == [str(Reliance.objects.get().turn)]
    assert staff.get(f"/api/documents/{fog.pk}/").status_code == HTTPStatus.NOT_FOUND
    assert len(staff.get(f"/api/documents/{fog.pk}/answers/").json()["results"]) == 1
    assert staff.get("/api/receipts/").json()["results"] == [receipt]
    assert staff.get(f"/api/receipts/{receipt['id']}/").json() == receipt
    assert staff.delete(f"/api/documents/{fog.pk}/").status_code == HTTPStatus.NOT_FOUND
    assert Receipt.objects.count() == 1


def test_a_document_is_taken_in_anew_from_its_text(staff: Client, fog: Document) -> None:
    chunk = fog.chunks.get()
    answer = staff.post(f"/api/documents/{fog.pk}/reingest/")
    assert answer.status_code == HTTPStatus.CREATED, answer.json()
    fog.refresh_from_db()
    assert fog.chunks.get().text == chunk.text
    missing = staff.post("/api/documents/none/reingest/")
    assert missing.status_code == HTTPStatus.NOT_FOUND


def test_a_document_has_its_text_and_a_list_has_not(staff: Client, fog: Document) -> None:
    assert "three times" in staff.get(f"/api/documents/{fog.pk}/").json()["content"]
    (listed,) = staff.get("/api/documents/", {"collection": "island"}).json()["results"]
    assert listed["id"] == fog.pk
    assert "content" not in listed


def test_collections_are_listed_with_their_sizes(staff: Client) -> None:
    factories.collection("handbook", documents=3)
    factories.collection("shop", documents=1)
    listed = staff.get("/api/collections/").json()["results"]
    assert [(each["name"], each["documents"], each["chunks"]) for each in listed] == [
        ("handbook", 3, 6),
        ("shop", 1, 2),
    ]
    assert listed[0]["threshold"] is None


def test_a_list_of_many_documents_costs_no_more_queries(
    staff: Client, django_assert_max_num_queries: Any
) -> None:
    factories.collection("handbook", documents=30)
    with django_assert_max_num_queries(6):
        listed = staff.get("/api/documents/")
    assert listed.json()["count"] == 30
