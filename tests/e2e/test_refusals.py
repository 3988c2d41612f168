"""What can't be done: each a clear error, nothing lost, no traceback."""

from uuid import uuid4

import pytest

from tests.e2e.conftest import Docent


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("why? " * 40_000, "at most 8,000"),
        ("a\x00b", "null character"),
    ],
    ids=["empty", "blank", "200,000 characters", "null character"],
)
def test_an_unusable_message_is_refused_with_the_reason(
    docent: Docent, message: str, said: str
) -> None:
    answer = docent.call("POST", "/api/chat/", {"message": message})
    assert answer.status == 400
    assert said in answer.body["detail"].lower()


def test_an_unknown_collection_is_not_found_and_others_are_not_named(docent: Docent) -> None:
    answer = docent.call("POST", "/api/chat/", {"message": "Hi?", "collections": ["coffee"]})
    assert (answer.status, answer.body["code"]) == (404, "unknown_collection")
    assert answer.body["detail"] == "There is no collection 'coffee' here."


@pytest.mark.parametrize(
    "body", [{}, {"message": ["a"]}, {"message": "a", "session_id": "no spaces"}, [1]]
)
def test_a_malformed_body_names_the_field(docent: Docent, body: object) -> None:
    answer = docent.call("POST", "/api/chat/", body)
    assert answer.status == 400
    assert answer.body["code"] == "invalid"
    assert answer.body["detail"]


def test_broken_json_is_a_client_error(docent: Docent) -> None:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {docent.key}"}
    answer = docent.send("POST", "/api/chat/", '{"message": ', headers)
    assert answer.status == 400
    assert "JSON" in answer.body["detail"]


def test_without_a_key_nothing_is_answered(docent: Docent) -> None:
    for method, path in (("POST", "/api/chat/"), ("GET", f"/api/turns/{uuid4()}/")):
        answer = docent.call(method, path, {"message": "Hi"}, key="")
        assert answer.status == 401
        assert answer.body["detail"]


def test_a_revoked_key_is_refused(docent: Docent) -> None:
    key = docent.manage("apikey", "create", "leaver").stdout.strip()
    assert docent.call("POST", "/api/chat/", {"message": "/help"}, key=key).status == 200
    assert docent.manage("apikey", "revoke", "leaver").returncode == 0
    assert docent.call("POST", "/api/chat/", {"message": "/help"}, key=key).status == 401


def test_somebody_elses_turn_is_not_found(docent: Docent) -> None:
    alice = docent.manage("apikey", "create", "alice").stdout.strip()
    bob = docent.manage("apikey", "create", "bob").stdout.strip()
    turn = docent.call("POST", "/api/chat/", {"message": "/help"}, key=alice).body["turn_id"]
    for path in (f"/api/turns/{turn}/", f"/api/turns/{turn}/trace/"):
        assert docent.call("GET", path, key=alice).status == 200
        assert docent.call("GET", path, key=bob).status == 404
    assert docent.call("POST", f"/api/turns/{turn}/cancel/", key=bob).status == 404


def test_an_address_that_does_not_exist_is_not_found_in_the_shape_of_the_api(
    docent: Docent,
) -> None:
    for path in ("/api/astrology/", "/api/turns/7/", f"/api/turns/{uuid4()}/"):
        answer = docent.call("GET", path)
        assert (answer.status, answer.body["code"]) == (404, "not_found")
        assert "Envelope" not in answer.body["detail"]


def test_documents_are_for_staff(docent: Docent) -> None:
    key = docent.manage("apikey", "create", "visitor").stdout.strip()
    assert docent.call("GET", "/api/documents/", key=key).status == 403
    listed = docent.call("GET", "/api/documents/?collection=teapot")
    assert listed.status == 200
    assert {document["title"] for document in listed.body["results"]} >= {"Phone app"}


def upload(docent: Docent, name: str, content: bytes) -> tuple[int, dict[str, object]]:
    edge = "edge"
    head = (
        f'--{edge}\r\nContent-Disposition: form-data; name="collection"\r\n\r\nuploads\r\n'
        f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    )
    headers = {
        "Content-Type": f"multipart/form-data; boundary={edge}",
        "Authorization": f"Bearer {docent.key}",
    }
    body = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
    answer = docent.send("POST", "/api/documents/", body, headers)
    return answer.status, answer.body


def test_an_uploaded_page_is_found_by_the_next_question(docent: Docent) -> None:
    page = b"# Warranty\n\nThe warranty of the Teapot lasts for seven years after the purchase.\n"
    status, body = upload(docent, "warranty.md", page)
    assert status == 201, body
    reply = docent.ask("How long does the warranty last?", collections=["uploads"])
    assert "seven years" in reply["reply"]


def test_a_document_can_be_sent_as_json_and_sent_again(docent: Docent) -> None:
    document = {"title": "Colours", "content": "The Teapot comes in red.", "source": "colours"}
    body = {"collection": "sent", "document": document}
    assert docent.call("POST", "/api/documents/", body).status == 201
    document["content"] = "The Teapot comes in green."
    assert docent.call("POST", "/api/documents/", body).status == 201
    (listed,) = docent.call("GET", "/api/documents/?collection=sent").body["results"]
    assert (listed["source"], listed["version"]) == ("colours", 2)


@pytest.mark.parametrize("more", [{}, {"document": {"title": "No content"}}])
def test_a_document_without_content_is_refused(docent: Docent, more: dict[str, object]) -> None:
    answer = docent.call("POST", "/api/documents/", {"collection": "sent", **more})
    assert answer.status == 400
    assert answer.body["detail"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("picture.md", b"\x89PNG\r\n\x1a\n\x00\x00\x00"), ("empty.md", b" \n"), ("bad.json", b"{")],
)
def test_an_unreadable_upload_is_refused_with_the_reason(
    docent: Docent, name: str, content: bytes
) -> None:
    status, body = upload(docent, name, content)
    assert status == 400
    assert body["detail"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("chat", "-q", " "), "empty"),
        (("chat", "-q", "Hi?", "--collection", "coffee"), "'coffee'"),
        (("trace", "nothing"), "'nothing'"),
        (("apikey", "create", "bad name!"), "'bad name!'"),
        (("apikey", "revoke", "nobody"), "'nobody'"),
        (("ingest", "README.md", "--collection", "Bad Name"), "'Bad Name'"),
    ],
)
def test_a_command_that_cannot_be_done_says_why_in_one_line(
    docent: Docent, words: tuple[str, ...], said: str
) -> None:
    done = docent.manage(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_path_that_does_not_exist_is_named(docent: Docent) -> None:
    done = docent.manage("ingest", "/no/such/folder")
    assert done.returncode != 0
    assert "/no/such/folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEARCH_FETCH_K", "many"),
        ("GUARDRAILS_STRICTNESS", "extreme"),
        ("ROUTES", "astrology"),
        ("RESPONSE_CONCURRENCY", "0"),
        ("DATABASE_URL", "mysql://somewhere/docent"),
        ("REDIS_URL", "http://somewhere"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name(
    docent: Docent, name: str, value: str
) -> None:
    wrong = Docent(docent.port, docent.environment | {name: value})
    done = wrong.manage("contracts")
    assert done.returncode == 1
    assert name in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "address", "said"),
    [
        ("DATABASE_URL", "postgresql://127.0.0.1:1/docent", "PostgreSQL can't be used"),
        ("REDIS_URL", "redis://127.0.0.1:1", "Redis can't be used"),
    ],
)
def test_a_server_that_is_away_is_named(docent: Docent, name: str, address: str, said: str) -> None:
    away = Docent(docent.port, docent.environment | {name: address})
    done = away.manage("chat", "-q", "Hi?")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_worker_is_refused_with_those_there_are(docent: Docent) -> None:
    done = docent.manage("workers", "astrologer")
    assert done.returncode != 0
    assert "'astrologer'" in done.stderr
    assert "guardrails" in done.stderr
