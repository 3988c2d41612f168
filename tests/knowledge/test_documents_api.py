"""The API of the documents: what goes in, what becomes of it, and what is refused."""

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from celery import current_app
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from knowledge import ingestion
from knowledge.models import Document, Ingest, Item, Receipt, Reliance
from tests import factories

pytestmark = pytest.mark.django_db

FOG = b"# Fog\n\nThe foghorn sounds twice every thirty seconds while the fog lasts.\n"
FERRY = b"# Ferry\n\nPlaces on the night ferry are booked at the harbour counter.\n"
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
    "/api/search/?q=fog",
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


@pytest.fixture
def staff(client: Client) -> Client:
    """A client that may do everything."""
    client.force_login(User.objects.create_user("ann", is_staff=True))
    return client


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are done as soon as they are rung for."""

    def deliver(name: str, args: list[str], queue: str) -> None:
        ingestion.run(args[0])

    monkeypatch.setattr(current_app, "send_task", deliver)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs wait."""
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)


def file(name: str, content: bytes = FOG) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def upload(client: Client, *files: SimpleUploadedFile, **more: Any) -> Any:
    """Send files into the collection `island`."""
    return client.post("/api/documents/", {"collection": "island", "file": list(files), **more})


def send(client: Client, **body: Any) -> Any:
    """Send JSON."""
    return client.post("/api/documents/", body, content_type="application/json")


def outcomes(answer: Any) -> dict[str, str]:
    return {item["origin"]: item["status"] for item in answer.json()["items"]["results"]}


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


def test_a_file_that_is_in_is_answered_with_201_and_what_became_of_it(
    staff: Client, worker: None
) -> None:
    answer = upload(staff, file("fog.md"))
    body = answer.json()
    assert answer.status_code == HTTPStatus.CREATED
    assert (body["collection"], body["status"], body["progress"]["finished"]) == (
        "island",
        "done",
        1,
    )
    assert outcomes(answer) == {"fog.md": "new"}
    assert Document.objects.get().title == "Fog"


def test_a_file_that_takes_longer_is_answered_with_202(staff: Client, nobody: None) -> None:
    answer = upload(staff, file("fog.md"), wait="false")
    assert (answer.status_code, answer.json()["status"]) == (HTTPStatus.ACCEPTED, "queued")
    assert outcomes(answer) == {"fog.md": "waiting"}
    assert staff.get(f"/api/ingests/{answer.json()['id']}/").json()["status"] == "queued"


def test_of_several_files_those_that_can_be_read_are_taken_in(staff: Client, worker: None) -> None:
    answer = upload(staff, file("fog.md"), file("photo.md", b"\x89PNG\x00"), file("f.md", FERRY))
    assert answer.status_code == HTTPStatus.CREATED
    assert outcomes(answer) == {"fog.md": "new", "photo.md": "skipped", "f.md": "new"}
    skipped = answer.json()["items"]["results"][1]
    assert skipped["reason"]
    assert answer.json()["progress"]["outcomes"]["skipped"] == 1


def test_when_no_file_can_be_read_the_reason_of_each_is_given(staff: Client, worker: None) -> None:
    answer = upload(staff, file("photo.md", b"\x89PNG\x00"), file("empty.md", b" \n"))
    assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.BAD_REQUEST, "invalid")
    assert [said.partition(":")[0] for said in answer.json()["fields"]["file"]] == [
        "photo.md",
        "empty.md",
    ]


def test_a_file_that_is_too_large_is_refused_by_name(staff: Client, settings: Settings) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    answer = upload(staff, file("small.md", b"x"), file("large.md", b"x" * 101))
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "large.md is larger than 100 bytes" in answer.json()["detail"]
    assert not Ingest.objects.exists()


def test_files_that_are_too_large_together_are_refused(staff: Client, settings: Settings) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    answer = upload(staff, *(file(f"{number}.md", b"x" * 100) for number in range(6)))
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "several requests" in answer.json()["detail"]


def test_more_files_than_are_taken_at_once_are_refused(staff: Client) -> None:
    answer = upload(staff, *(file(f"{number}.md") for number in range(101)))
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "at most 100 files" in answer.json()["detail"]


def test_two_files_of_one_name_are_refused(staff: Client) -> None:
    answer = upload(staff, file("fog.md"), file("fog.md", FERRY))
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "'fog.md'" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.md", "passwd.md"),
        ("C:\\secrets\\key.md", "key.md"),
        ("<img src=x onerror=alert(1)>.md", "<img src=x onerror=alert(1)>.md"),
        ("mail\u202efdp.md", "mailfdp.md"),
        ("x" * 300 + ".md", None),
    ],
)
def test_a_hostile_name_is_a_name_and_no_path(
    name: str, kept: str | None, staff: Client, worker: None
) -> None:
    answer = upload(staff, file(name))
    assert answer.status_code == HTTPStatus.CREATED
    assert answer["Content-Type"] == "application/json"
    assert answer["X-Content-Type-Options"] == "nosniff"
    (origin,) = outcomes(answer)
    assert origin == kept or (kept is None and len(origin) <= 255)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://user:password@example.org/",
        "not an address",
    ],
)
def test_an_address_nobody_may_ask_for_is_refused_with_the_reason(
    url: str, staff: Client, worker: None
) -> None:
    answer = send(staff, collection="island", url=url)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.json()["fields"]["url"]
    assert not Document.objects.exists()


@pytest.mark.parametrize("is_flat", [True, False])
def test_a_document_as_json_is_taken_in_and_replaced(
    is_flat: bool, staff: Client, worker: None
) -> None:
    for text in ("The foghorn sounds twice.", "The foghorn is silent now."):
        document = {"title": "Fog", "source": "fog", "content": text}
        body = document if is_flat else {"document": document}
        answer = send(staff, collection="island", **body)
        assert answer.status_code == HTTPStatus.CREATED, answer.json()
    found = Document.objects.get()
    assert (found.source, found.version, found.collection.name) == ("fog", 2, "island")


@pytest.mark.parametrize(
    "body",
    [{}, {"collection": "island"}, {"url": "http://example.org/", "document": {"content": "x"}}],
)
def test_not_exactly_one_way_in_is_refused(body: dict[str, Any], staff: Client) -> None:
    answer = send(staff, **body)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "Send one or more files, or a url, or a document" in answer.json()["detail"]


def test_a_collection_is_named_in_small_letters(staff: Client) -> None:
    answer = send(staff, collection="My Documents", content="The foghorn sounds twice.")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "'My Documents'" in answer.json()["detail"]


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
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "nothing to try again" in answer.json()["detail"]
    assert staff.post(f"/api/ingests/{done}/cancel/").json()["status"] == "done"


def test_an_open_job_cannot_be_tried_again(staff: Client, job: Ingest) -> None:
    answer = staff.post(f"/api/ingests/{job.pk}/retry/")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert staff.post(f"/api/ingests/{uuid4()}/retry/").status_code == HTTPStatus.NOT_FOUND


@pytest.fixture
def fog(staff: Client, worker: None) -> Document:
    """A document with two versions; an answer relied on the first."""
    upload(staff, file("fog.md"))
    first = Document.objects.get()
    Reliance.objects.create(turn=uuid4(), document=first.pk, version=1)
    upload(staff, file("fog.md", FOG.replace(b"twice", b"three times")))
    return Document.objects.get()


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


def test_a_search_gives_passages_and_how_far_they_can_be_trusted(
    staff: Client, fog: Document
) -> None:
    answer = staff.get("/api/search/", {"q": "How often does the foghorn sound?"})
    body = answer.json()
    assert answer.status_code == HTTPStatus.OK
    (passage,) = body["passages"]
    assert (passage["document_id"], passage["version"]) == (fog.pk, 2)
    assert passage["cosine"] > 0
    assert body["quality"] in {"excellent", "good", "poor"}
    assert body["explain"] is None


def test_explain_tells_every_levels_rank_and_why_something_was_dropped(
    staff: Client, fog: Document, worker: None
) -> None:
    upload(staff, file("ferry.md", FERRY))
    query = {"q": "How often does the foghorn sound?", "explain": "1", "limit": "1"}
    explained = staff.get("/api/search/", query).json()["explain"]
    assert {"keyword", "semantic"} <= set(explained["weights"])
    first, second = explained["candidates"]
    assert (first["place"], first["dropped"]) == (1, None)
    assert {each["level"] for each in first["standings"]} >= {"keyword", "semantic"}
    assert {each["rank"] for each in first["standings"]} == {1}
    assert second["place"] is None
    assert second["why"]
    assert explained["wordings"][0]["kind"] == "question"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({}, "q"),
        ({"q": "  "}, "q"),
        ({"q": "x" * 8_001}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "fog", "limit": "0"}, "limit"),
        ({"q": "fog", "limit": "many"}, "limit"),
        ({"q": "fog", "language": "english!"}, "language"),
        ({"q": "fog", "explain": "perhaps"}, "explain"),
    ],
)
def test_a_search_that_cannot_be_understood_names_the_field(
    query: dict[str, str], field: str, staff: Client
) -> None:
    answer = staff.get("/api/search/", query)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert set(answer.json()["fields"]) == {field}
    assert field in answer.json()["detail"]


def test_a_search_in_a_collection_there_is_not_names_those_there_are(staff: Client) -> None:
    factories.collection("handbook")
    answer = staff.get("/api/search/", {"q": "fog", "collection": ["handbook", "coffee"]})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_collection")
    assert "handbook" in answer.json()["detail"]


def test_a_search_keeps_to_the_language_and_audience_asked_for(
    staff: Client, fog: Document
) -> None:
    def found(**more: str) -> int:
        return len(staff.get("/api/search/", {"q": "foghorn", **more}).json()["passages"])

    Document.objects.update(audience="sailors")
    assert found() == found(language="en") == found(audience="sailors") == 1
    assert found(language="de") == found(audience="cooks") == 0


def test_a_list_of_many_documents_costs_no_more_queries(
    staff: Client, django_assert_max_num_queries: Any
) -> None:
    factories.collection("handbook", documents=30)
    with django_assert_max_num_queries(6):
        staff.get("/api/documents/")
