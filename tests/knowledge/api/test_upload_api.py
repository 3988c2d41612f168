"""The API that takes documents in: what goes in, how it is answered, and what is refused."""

from http import HTTPStatus
from threading import BoundedSemaphore
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from knowledge.api import ingest_api
from knowledge.models import Document, Ingest
from tests.knowledge.desk import FERRY, file, outcomes, send, upload

pytestmark = pytest.mark.django_db


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


def test_who_comes_when_many_wait_already_is_answered_at_once(
    staff: Client, worker: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = BoundedSemaphore(1)
    monkeypatch.setattr(ingest_api, "waiting", places)
    for name in ("first.md", "second.md"):
        assert upload(staff, file(name)).status_code == HTTPStatus.CREATED
    with places:
        answer = upload(staff, file("third.md"))
    assert answer.status_code == HTTPStatus.ACCEPTED
    assert answer.json()["id"]
    assert upload(staff, file("fourth.md")).status_code == HTTPStatus.CREATED


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
    assert [problem.partition(":")[0] for problem in answer.json()["fields"]["file"]] == [
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
    stored = Document.objects.get()
    assert (stored.source, stored.version, stored.collection.name) == ("fog", 2, "island")


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


def test_a_file_of_a_name_that_is_taken_replaces_only_what_it_is_told_to(
    staff: Client, worker: None
) -> None:
    upload(staff, file("notes.md", b"# Mine\n\nThe harbour master answers calls at night."))
    theirs = file("evil/../notes.md", b"# Theirs\n\nThe lighthouse keeper answers them by day.")
    refused = upload(staff, theirs)
    assert (refused.status_code, refused.json()["code"]) == (HTTPStatus.CONFLICT, "name_taken")
    assert "'notes.md'" in refused.json()["detail"]
    assert Document.objects.get().title == "Mine"
    same = upload(staff, file("notes.md", b"# Mine\n\nThe harbour master answers calls at night."))
    assert outcomes(same) == {"notes.md": "unchanged"}
    theirs = file("notes.md", b"# Theirs\n\nThe lighthouse keeper answers them by day.")
    assert outcomes(upload(staff, theirs, replace="true")) == {"notes.md": "changed"}
    assert Document.objects.get().title == "Theirs"


def test_of_two_files_of_one_name_that_wait_the_second_is_refused(
    staff: Client, nobody: None
) -> None:
    assert upload(staff, file("fog.md"), wait="false").status_code == HTTPStatus.ACCEPTED
    other = file("fog.md", b"# Other\n\nIt says something else.")
    assert upload(staff, other, wait="false").status_code == HTTPStatus.CONFLICT
    assert upload(staff, file("fog.md"), wait="false").status_code == HTTPStatus.ACCEPTED
