"""Errors of the API: one shape, nothing of ours in it."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.core.management import call_command
from django.db import OperationalError
from django.test import AsyncClient, Client

from agents.models import Fault
from conversations import api
from conversations.limits import AddressLimit
from tests import factories


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    client.force_login(User.objects.create(username="ann", is_staff=True))
    return client


def test_a_bug_gives_the_user_a_sentence_and_the_operator_the_rest(
    staff: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(api.TurnView, "get", bug)
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    body = answer.json()
    fault = Fault.objects.get()
    assert answer.status_code == 500
    assert body["error_id"] == fault.code
    assert fault.code in body["detail"]
    assert "secret detail" not in answer.content.decode()
    assert "secret detail" in fault.details


def test_what_does_not_exist_is_not_found(staff: Client) -> None:
    answer = staff.get("/api/turns/00000000-0000-4000-8000-000000000000/")
    assert answer.status_code == 404
    assert set(answer.json()) == {"code", "detail"}


def test_a_wrong_method_is_refused(staff: Client) -> None:
    answer = staff.get("/api/chat/")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.django_db
def test_the_migrations_are_complete() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


@pytest.fixture
def key(db: None) -> dict[str, str]:
    """The header of a key that may chat."""
    return factories.key(User.objects.create_user("shop"))


@pytest.mark.parametrize(
    ("method", "path", "more", "expected"),
    [
        ("get", "/api", {}, (404, "not_found")),
        ("get", "/api/", {}, (404, "not_found")),
        ("post", "/api/nowhere/", {}, (404, "not_found")),
        ("get", "/api/turns/1/", {}, (404, "not_found")),
        ("get", "/api/chat", {}, (404, "not_found")),
        ("post", "/api/chat", {}, (404, "not_found")),
        ("get", "/v1", {}, (404, "not_found")),
        ("get", "/v1/files", {}, (404, "not_found")),
        ("put", "/api/chat/", {}, (405, "method_not_allowed")),
        ("delete", "/v1/models", {}, (405, "method_not_allowed")),
        ("get", "/api/search/?q=a", {"Accept": "text/html"}, (406, "not_acceptable")),
        ("post", "/api/chat/", {"Content-Type": "text/plain"}, (415, "unsupported_media_type")),
        ("post", "/v1/embeddings", {"Content-Type": "a/b"}, (415, "unsupported_media_type")),
        ("post", "/api/chat/", {"Content-Type": "application/json"}, (400, "parse_error")),
        ("get", "/api/search/?q=a", {"Host": "evil.example"}, (400, "unknown_host")),
        ("get", "/api/nowhere/", {"Host": "evil.example"}, (400, "unknown_host")),
        ("get", "/v1/models", {"Host": "evil.example"}, (400, "unknown_host")),
        ("get", "/v1/models", {"Authorization": "Bearer x"}, (401, "invalid_api_key")),
        ("get", "/api/admin/queues/", {}, (403, "permission_denied")),
    ],
)
def test_every_refusal_below_api_and_v1_has_one_shape(
    method: str,
    path: str,
    more: dict[str, str],
    expected: tuple[int, str],
    client: Client,
    key: dict[str, str],
) -> None:
    kind = more.get("Content-Type", "application/json")
    answer = client.generic(method.upper(), path, "{", kind, headers=key | more)
    body = answer.json()
    assert answer["Content-Type"] == "application/json"
    if path.startswith("/v1"):
        body = body["error"]
        assert set(body) == {"message", "type", "param", "code"}
    else:
        assert set(body) == {"code", "detail"}
    assert (answer.status_code, body["code"]) == expected


def test_who_forgets_the_slash_is_told_where_it_goes(client: Client, key: dict[str, str]) -> None:
    answer = client.post("/api/chat", headers=key)
    assert answer.json()["detail"].endswith("/api/chat/")
    assert "slash" not in client.post("/api/chats", headers=key).json()["detail"]
    assert client.get("/admin").status_code == 301


def test_pages_for_people_stay_pages(client: Client) -> None:
    answer = client.get("/nowhere/")
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert client.get("/", headers={"Host": "evil.example"})["Content-Type"].startswith("text/html")


def test_a_login_without_a_token_of_the_page_is_refused_in_that_shape(db: None) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.create(username="ann", is_staff=True))
    answer = browser.post("/api/chat/", {"message": "Hi"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize("path", ["/api/search/", "/v1/models"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ZeroDivisionError("secret detail"), (500, "internal")),
        (OperationalError("secret detail"), (503, "unavailable")),
        (SuspiciousOperation("secret detail"), (400, "invalid")),
        (PermissionDenied("secret detail"), (403, "forbidden")),
        (BadRequest("secret detail"), (400, "invalid")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_fails_before_a_view_is_reached_has_that_shape_too(
    path: str,
    error: Exception,
    expected: tuple[int, str],
    db: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bug(*_: Any) -> None:
        raise error

    monkeypatch.setattr(AddressLimit, "process_request", bug)
    answer = Client(raise_request_exception=False).get(path)
    body = answer.json()["error"] if path.startswith("/v1") else answer.json()
    assert (answer.status_code, body["code"]) == expected
    assert "secret detail" not in answer.content.decode()
    if answer.status_code == 500:
        assert body["error_id"] == Fault.objects.get().code


def test_the_web_server_gives_a_bug_its_id_as_well(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(AddressLimit, "process_request", bug)
    answer = async_to_sync(AsyncClient(raise_request_exception=False).get)("/api/search/")
    assert answer.json()["error_id"] == Fault.objects.get().code


def test_the_head_of_an_answer_and_what_can_be_asked_are_told(
    transactional_db: None, client: Client, key: dict[str, str]
) -> None:
    talk = factories.conversation("a", owner=User.objects.get())
    events = f"/api/turns/{factories.turn(talk).pk}/events/"
    for path in ("/api/conversations/", events, "/api/conversations/a/events/"):
        assert client.options(path, headers=key).status_code == 200
        head = client.head(path, headers=key)
        assert (head.status_code, head.content) == (200, b"")
    assert client.head("/api/conversations/").status_code == 401


@pytest.fixture
def page_elsewhere(settings: LazySettings) -> dict[str, str]:
    """What a browser sends for a script of a page that may ask."""
    settings.CORS_ALLOWED_ORIGINS = ["https://www.example.org"]
    return {"Origin": "https://www.example.org"}


PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key,last-event-id",
}


@pytest.mark.parametrize("path", ["/api/chat/", "/v1/models", "/mcp"])
def test_a_page_that_may_ask_is_told_so_before_it_does(
    path: str, client: Client, page_elsewhere: dict[str, str]
) -> None:
    told = client.options(path, headers=page_elsewhere | PREFLIGHT)
    assert told.status_code == 200
    assert told["Access-Control-Allow-Origin"] == "https://www.example.org"
    allowed = told["Access-Control-Allow-Headers"].split(", ")
    assert {*PREFLIGHT["Access-Control-Request-Headers"].split(",")} <= {*allowed}
    assert "Access-Control-Allow-Credentials" not in told


def test_answers_errors_and_streams_may_be_read_there(
    transactional_db: None, client: Client, key: dict[str, str], page_elsewhere: dict[str, str]
) -> None:
    talk = factories.conversation("a", owner=User.objects.get())
    events = f"/api/turns/{factories.turn(talk).pk}/events/"
    for path in ("/api/conversations/", events, "/api/nowhere/", "/v1/models"):
        told = client.get(path, headers=key | page_elsewhere)
        assert told["Access-Control-Allow-Origin"] == "https://www.example.org", path
        assert "origin" in told["Vary"].lower(), path


@pytest.mark.parametrize("origin", ["https://evil.example", "http://www.example.org", "null"])
def test_other_pages_and_pages_of_ours_are_told_nothing(
    origin: str, client: Client, page_elsewhere: dict[str, str]
) -> None:
    for headers in ({"Origin": origin}, {"Origin": origin} | PREFLIGHT):
        told = client.options("/api/chat/", headers=headers)
        assert not [name for name in told.headers if name.startswith("Access-Control")]
    assert "Access-Control-Allow-Origin" not in client.get("/healthz", headers=page_elsewhere)


def test_where_all_pages_may_ask_no_cookies_come_along(
    client: Client, settings: LazySettings
) -> None:
    settings.CORS_ALLOW_ALL_ORIGINS = True
    told = client.options("/api/chat/", headers={"Origin": "https://a.example"} | PREFLIGHT)
    assert told["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in told
