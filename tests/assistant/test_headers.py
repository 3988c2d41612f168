"""Headers: whatever stands where a key is expected is no key, and no fault of ours."""

from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Fault
from knowledge.models import Document
from tests import factories

pytestmark = pytest.mark.django_db

PATHS = ("/api/documents/", "/api/chat/", "/v1/models", "/api/search/?q=a", "/api/admin/queues/")
ODD = {
    "not ASCII": "Bearer \xe9",
    "not ASCII before it": "B\xe9arer x",
    "nothing after it": "Bearer ",
    "nothing at all": "",
    "blanks alone": "   ",
    "two blanks": "Bearer  x",
    "two words": "Bearer x y",
    "100 kB": "Bearer " + "x" * 100_000,
    "a null character": "Bearer a\0b",
    "two headers": "Bearer a, Bearer b",
    "small letters": "bearer x",
    "another scheme": "Basic dTpw",
    "a tab": "Bearer\tx",
    "quotes and a line break": "Bearer \"'\r\n; DROP",
    "letters of other scripts": "Bearer ключ".encode().decode("latin-1"),
}


@pytest.mark.parametrize("header", ODD.values(), ids=ODD)
def test_what_is_no_key_is_refused_and_no_fault(client: Client, header: str) -> None:
    client.raise_request_exception = False
    for path in PATHS:
        answer = client.get(path, headers={"Authorization": header})
        assert answer.status_code in {401, 405}, path
    assert (
        client.post("/api/chat/", {"message": "a"}, headers={"Authorization": header}).status_code
        == 401
    )
    assert not Fault.objects.exists()


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "sessionid=\xe9; csrftoken=\0"},
        {"X-Forwarded-For": "\xe9, ::, 999.1.1.1"},
        {"Accept-Language": "\xe9;q=x," * 500},
        {"Accept": "\xe9/*; q=a"},
        {"Idempotency-Key": "\xe9\0" * 500},
        {"Last-Event-Id": "\xe9"},
        {"Origin": "null"},
        {"Referer": "http://[::"},
        {"Content-Type": "application/json; charset=\xe9"},
        {"Content-Type": "\xe9"},
        {"Content-Type": "multipart/form-data"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_other_odd_headers_are_no_fault_either(client: Client, headers: dict[str, str]) -> None:
    client.raise_request_exception = False
    content_type = headers.get("Content-Type", "application/json")
    for path in ("/", "/api/docs/", *PATHS):
        assert client.get(path, headers=headers).status_code < 500, path
    for path in ("/", "/api/chat/", "/v1/chat/completions", "/admin/login/"):
        answer = client.generic("POST", path, b"{}", content_type=content_type, headers=headers)
        assert answer.status_code < 500, path
    assert not Fault.objects.exists()


@pytest.fixture
def secret(db: None) -> str:
    header = factories.key(User.objects.create(username="ann"), scopes=["chat", "documents"])
    return next(iter(header.values())).removeprefix("Bearer ")


@pytest.mark.parametrize("name", ["key", "token", "access_token", "api_key", "authorization"])
def test_a_key_in_an_address_or_a_cookie_lets_nobody_in(
    client: Client, secret: str, name: str
) -> None:
    client.cookies[name] = secret
    assert client.get(f"/api/documents/?{name}={secret}").status_code == HTTPStatus.UNAUTHORIZED
    assert client.get(f"/v1/models?{name}=Bearer+{secret}").status_code == HTTPStatus.UNAUTHORIZED


def test_a_header_makes_no_other_request_of_one(client: Client, secret: str) -> None:
    factories.collection()
    document = Document.objects.get()
    key = {"Authorization": f"Bearer {secret}"}
    address = f"/api/documents/{document.pk}/"
    for header in (
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
    ):
        client.get(address, headers=key | {header: "DELETE"})
        client.post(f"{address}?_method=DELETE", headers=key | {header: "DELETE"})
    assert Document.objects.filter(pk=document.pk).exists()
    foreign = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    page = client.get("/admin/", headers=foreign)
    assert "evil.example" not in page["Location"]
    assert client.get("/", headers={"Host": "evil.example"}).status_code == HTTPStatus.BAD_REQUEST


def test_a_session_alone_changes_nothing_from_another_page(secret: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_superuser("bea"))
    for path in ("/api/chat/", "/api/documents/", "/v1/chat/completions", "/"):
        answer = browser.post(path, {"message": "a"}, headers={"Origin": "https://evil.example"})
        assert answer.status_code == HTTPStatus.FORBIDDEN, path


@pytest.mark.parametrize("names", [["x" * 60] * 100_000, ["a"] * 100_000])
def test_a_list_of_names_is_bounded_and_not_said_again(
    client: Client, secret: str, names: list[str]
) -> None:
    key = {"Authorization": f"Bearer {secret}"}
    body = {"message": "a", "collections": names}
    answer = client.post("/api/chat/", body, content_type="application/json", headers=key)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert len(answer.content) < 1_000
