"""Limits hold however many ask at once, and say when to come back."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.steps import events
from conversations import limits
from tests import factories
from tests.conversations.conftest import served

pytestmark = pytest.mark.django_db

RECEIPTS = "/api/receipts/"
WRONG = {"username": "root", "password": "wrong"}


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No stretch of time ends while a test counts, and no other test has counted in it."""
    moment = time.time()
    monkeypatch.setattr(limits, "time", lambda: moment)
    yield
    for name in events.connection().scan_iter("limit:*"):
        events.connection().delete(name)


@pytest.fixture
def key(settings: LazySettings) -> dict[str, str]:
    """A key with which three requests a minute may be sent."""
    settings.MAX_REQUESTS_PER_KEY = 3
    return factories.key(User.objects.create_user("ann"), scopes=["documents"])


def ask(port: int, headers: dict[str, str], path: str = RECEIPTS) -> tuple[HTTPResponse, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


@pytest.mark.django_db(transaction=True)
def test_of_many_requests_at_once_exactly_as_many_pass_as_allowed(
    port: int, settings: LazySettings, key: dict[str, str]
) -> None:
    settings.MAX_REQUESTS_PER_KEY = 10
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: ask(port, key), range(48)))
    statuses = [response.status for response, _ in answers]
    assert (statuses.count(HTTPStatus.OK), statuses.count(HTTPStatus.TOO_MANY_REQUESTS)) == (10, 38)
    refused, body = next(each for each in answers if each[0].status != HTTPStatus.OK)
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert json.loads(body)["code"] == "throttled"
    assert "No more than 10 requests a minute with one key." in json.loads(body)["detail"]


@pytest.mark.django_db(transaction=True)
def test_of_many_visitors_of_one_address_exactly_as_many_pass_as_allowed(
    port: int, settings: LazySettings
) -> None:
    settings.MAX_REQUESTS_PER_ADDRESS = 10
    with ThreadPoolExecutor(12) as pool:
        statuses = list(pool.map(lambda _: ask(port, {}, "/")[0].status, range(48)))
    assert (statuses.count(HTTPStatus.OK), statuses.count(HTTPStatus.TOO_MANY_REQUESTS)) == (10, 38)


def test_clients_of_openai_are_told_of_an_address_in_their_shape(
    client: Client, settings: LazySettings
) -> None:
    settings.MAX_REQUESTS_PER_ADDRESS = 1
    answers = [client.get("/v1/models") for _ in range(2)]
    assert answers[1].status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert answers[1].json()["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(answers[1]["Retry-After"]) <= 60


def test_another_key_has_a_limit_of_its_own(client: Client, key: dict[str, str]) -> None:
    other = factories.key(User.objects.get(), scopes=["documents"])
    statuses = [client.get(RECEIPTS, headers=key).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    assert client.get(RECEIPTS, headers=other).status_code == HTTPStatus.OK


def test_the_next_minute_begins_anew(
    client: Client, key: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        last = client.get(RECEIPTS, headers=key)
    later = time.time() + int(last["Retry-After"])
    monkeypatch.setattr(limits, "time", lambda: later)
    assert client.get(RECEIPTS, headers=key).status_code == HTTPStatus.OK


@pytest.mark.parametrize(
    ("path", "accept", "kind"),
    [
        ("/api/turns/", "*/*", "application/json"),
        ("/", "text/html", "text/plain"),
        ("/", "application/json", "application/json"),
        ("/admin/login/", "text/html", "text/plain"),
    ],
)
def test_an_address_that_asks_too_much_is_refused_everywhere_with_a_sentence(
    client: Client, settings: LazySettings, path: str, accept: str, kind: str
) -> None:
    settings.MAX_REQUESTS_PER_ADDRESS = 1
    client.get(path)
    refused = client.get(path, headers={"Accept": accept})
    assert refused.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert refused["Content-Type"] == kind
    assert "No more than 1 requests a minute from one address. Try again in" in (
        refused.content.decode()
    )
    assert int(refused["Retry-After"]) > 0
    assert client.get(path, REMOTE_ADDR="192.0.2.9").status_code != HTTPStatus.TOO_MANY_REQUESTS
    assert client.get("/healthz").status_code == HTTPStatus.OK


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", ""),
        ("no address", "no address"),
    ],
)
def test_an_address_counts_as_what_its_provider_gave_out(address: str, counted: str) -> None:
    assert limits.network(address) == counted


def test_logins_that_fail_too_often_are_refused_even_with_the_right_password(
    client: Client, settings: LazySettings
) -> None:
    settings.MAX_FAILED_LOGINS = 3
    User.objects.create_superuser("root", password="right")
    login = reverse("admin:login")
    right = {"username": "root", "password": "right"}
    assert [client.post(login, WRONG).status_code for _ in range(3)] == [200, 200, 200]
    refused = client.post(login, right)
    assert refused.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert "Too many logins have failed. Try again in" in refused.content.decode()
    assert 0 < int(refused["Retry-After"]) <= limits.QUARTER_HOUR
    assert client.post(login, right, REMOTE_ADDR="192.0.2.9").status_code == HTTPStatus.FOUND
    assert client.get("/admin/").status_code == HTTPStatus.OK


def test_who_logs_in_rightly_may_do_so_as_often_as_they_like(
    client: Client, settings: LazySettings
) -> None:
    settings.MAX_FAILED_LOGINS = 2
    User.objects.create_superuser("root", password="right")
    right = {"username": "root", "password": "right"}
    for _ in range(6):
        assert client.post(reverse("admin:login"), right).status_code == HTTPStatus.FOUND


def test_one_name_is_not_guessed_from_ever_more_addresses(
    client: Client, settings: LazySettings
) -> None:
    settings.MAX_FAILED_LOGINS = 1
    login = reverse("admin:login")
    statuses = [
        client.post(login, WRONG, REMOTE_ADDR=f"192.0.2.{number}").status_code
        for number in range(limits.LOGINS_OF_A_NAME + 1)
    ]
    assert statuses == [200] * limits.LOGINS_OF_A_NAME + [429]


def test_while_redis_is_away_nobody_is_kept_out(
    client: Client, key: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "send", lambda _: [])
    assert {client.get(RECEIPTS, headers=key).status_code for _ in range(5)} == {200}


@pytest.mark.parametrize(
    ("trusted", "statuses"), [(["127.0.0.1"], [200, 200, 429]), (["192.0.2.1"], [200, 429, 429])]
)
def test_only_a_trusted_proxy_says_who_asks(
    trusted: list[str], statuses: list[int], settings: LazySettings, transactional_db: None
) -> None:
    settings.MAX_REQUESTS_PER_ADDRESS = 1
    with served(forwarded_allow_ips=trusted) as port:
        said = ("203.0.113.1", "198.51.100.7, 203.0.113.2", "198.51.100.8, 203.0.113.2")
        answers = [ask(port, {"X-Forwarded-For": each}, "/")[0].status for each in said]
    assert answers == statuses
