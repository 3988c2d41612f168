"""Headers: whatever stands where a key is expected is no key, and no fault of ours."""

import pytest
from django.test import Client

from agents.models import Fault

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
