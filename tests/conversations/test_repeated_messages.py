"""Repeated messages: one that is sent again with its Idempotency-Key begins no other turn."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from agents.models import Envelope
from agents.names import Role
from agents.steps import presence
from conversations.errors import KeyReused, UnusableKey
from conversations.models import Conversation, Message
from conversations.services import Asker, ask

Send = Callable[..., Any]


@pytest.fixture(autouse=True)
def listening(transactional_db: None) -> None:
    """Somebody listens to every queue."""
    presence.announce([role.queue for role in Role])


@pytest.fixture
def send(client: Client) -> Send:
    """Send a message with a key, as one client."""
    client.force_login(User.objects.create(username="ann"))

    def sending(message: str, key: str, **more: Any) -> Any:
        body = {"message": message, "wait": False, **more}
        headers = {"Idempotency-Key": key}
        return client.post("/api/chat/", body, content_type="application/json", headers=headers)

    return sending


@pytest.mark.parametrize("more", [{}, {"session_id": "s"}])
def test_the_same_message_begins_one_turn_while_it_is_answered_and_after(
    send: Send, more: dict[str, str]
) -> None:
    first, second = send("Refund it.", "k1", **more), send("Refund it.", "k1", **more)
    assert (first.status_code, second.status_code) == (HTTPStatus.ACCEPTED, HTTPStatus.ACCEPTED)
    assert first.json()["turn_id"] == second.json()["turn_id"]
    Envelope.objects.update(status="completed")
    Conversation.objects.update(status=Conversation.Status.OPEN)
    assert send("Refund it.", "k1", **more).json()["turn_id"] == first.json()["turn_id"]
    assert Message.objects.count() == Envelope.objects.count() == 1
    assert send("Refund it.", "k2", **more).json()["turn_id"] != first.json()["turn_id"]


def test_another_message_with_the_key_is_refused_and_says_why(send: Send) -> None:
    send("Refund it.", "k1", session_id="s")
    answer = send("Refund another.", "k1", session_id="s")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Message.objects.count() == 1


@pytest.mark.parametrize("key", ["x" * 201, "zażółć", "a\tb"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(UnusableKey, match="1 to 200 printable"):
        ask("Refund it.", Asker(None), idempotency_key=key)
    assert not Conversation.objects.exists()


def test_a_key_belongs_to_its_session_and_owner() -> None:
    ann, ben = (Asker(User.objects.create(username=name)) for name in ("ann", "ben"))
    turns = {
        ask("Refund it.", ann, idempotency_key="k").pk,
        ask("Refund that.", ben, idempotency_key="k").pk,
        ask("Refund this.", ann, session="s", idempotency_key="k").pk,
    }
    assert len(turns) == 3
    with pytest.raises(KeyReused):
        ask("Refund that.", ann, idempotency_key="k")


def test_two_that_come_at_once_begin_one_turn() -> None:
    both = Barrier(2)

    def sending(_: int) -> Any:
        both.wait(10)
        try:
            return ask("Refund it.", Asker(None), idempotency_key="k").pk
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(sending, range(2)))) == 1
