"""A crowd of questions waits in its lane, and what is quick passes it."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import Envelope
from agents.names import Status
from conversations import lanes
from conversations.lanes import FOLLOWERS, OTHERS, QUESTIONS, lane_of
from tests import factories
from tests.factories import key


@pytest.mark.parametrize(
    ("method", "path", "lane"),
    [
        ("POST", "/", QUESTIONS),
        ("POST", "/api/chat/", QUESTIONS),
        ("POST", "/v1/chat/completions", QUESTIONS),
        ("POST", "/api/conversations/visitor-17/messages/", QUESTIONS),
        ("GET", "/api/conversations/visitor-17/messages/", OTHERS),
        ("GET", "/", OTHERS),
        ("POST", "/api/documents/", OTHERS),
        ("POST", "/api/turns/0f7c2f6e-4f39-4a44-9a50-3a1d9c1c3f10/cancel/", FOLLOWERS),
        ("GET", "/api/turns/0f7c2f6e-4f39-4a44-9a50-3a1d9c1c3f10/events/", FOLLOWERS),
    ],
)
def test_each_request_has_its_lane(method: str, path: str, lane: lanes.Lane) -> None:
    assert lane_of(method, path) is lane


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All places of the questions are taken."""
    monkeypatch.setattr(lanes, "PATIENCE_SECONDS", 0.1)
    for _ in range(4):
        QUESTIONS.enter()
    yield
    for _ in range(4):
        QUESTIONS.leave()


def call(port: int, method: str, path: str, user: User) -> tuple[int, str | None, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = key(user) | {"Content-Type": "application/json"}
    connection.request(method, path, json.dumps({"message": "/help", "wait": False}), headers)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, response.headers["Retry-After"], body


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("crowded", "listening")
def test_who_waits_in_vain_is_told_when_to_come_back_and_a_cancel_passes(
    port: int, clerk: User
) -> None:
    status, retry_after, body = call(port, "POST", "/api/chat/", clerk)
    assert (status, retry_after, body["code"]) == (429, "5", "busy")
    status, retry_after, body = call(port, "POST", "/v1/chat/completions", clerk)
    assert (status, retry_after, body["error"]["code"]) == (429, "5", "rate_limit_exceeded")
    running = factories.turn(factories.conversation(owner=clerk), status=Status.RUNNING)
    status, _, body = call(port, "POST", f"/api/turns/{running.pk}/cancel/", clerk)
    assert (status, body["status"]) == (200, "cancelled")
    assert call(port, "GET", "/healthz", clerk)[0] == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("listening")
def test_whoever_was_answered_has_left_the_lane(port: int, clerk: User) -> None:
    for number in range(6):
        status, _, body = call(port, "POST", "/api/chat/", clerk)
        assert status == 202, (number, body)
    assert Envelope.objects.count() == 6
