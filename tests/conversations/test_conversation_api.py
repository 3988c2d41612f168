"""Conversations over HTTP: started, listed, read, gone on with and forgotten."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from agents.models import Envelope
from agents.names import Status
from conversations.models import Assistant, Conversation, Message
from tests import factories

pytestmark = pytest.mark.django_db

LIST = "/api/conversations/"
Send = Callable[..., Any]


@pytest.fixture
def shop() -> User:
    """Who owns the keys."""
    return User.objects.create_user("shop")


@pytest.fixture
def send(client: Client, shop: User) -> Send:
    """Send a request with a key of the shop's, or with that of `headers`."""
    own = factories.key(shop)

    def sending(method: str, where: str = LIST, body: Any = None, **more: Any) -> Any:
        headers = more.pop("headers", own) | more
        kind = {} if method in {"get", "delete"} else {"content_type": "application/json"}
        return getattr(client, method)(where, body, headers=headers, **kind)

    return sending


def test_a_conversation_is_begun_once_with_all_that_was_said_of_it(send: Send) -> None:
    factories.collection("handbook")
    Assistant.objects.create(name="telecom", collections=["handbook"])
    body = {
        "session_id": "visitor-17",
        "assistant": "telecom",
        "collections": ["handbook"],
        "user_id": "u123",
    }
    begun, again = send("post", LIST, body), send("post", LIST, body)
    assert (begun.status_code, again.status_code) == (201, 200)
    assert begun.json() | {"updated": 0} == again.json() | {"updated": 0}
    assert begun.json() | body == begun.json()
    assert begun.json()["owner"] == "shop"
    assert send("get", LIST + "visitor-17/").json()["id"] == begun.json()["id"]
    assert send("get", LIST + begun.json()["id"] + "/").json() == again.json()


def test_the_same_key_of_a_retry_begins_one_conversation(send: Send) -> None:
    first, second = (send("post", LIST, {}, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert send("post", LIST, {}).json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"session_id": "mine", "assistant": "telecom"}, 409, "other_assistant"),
        ({"session_id": "mine", "user_id": "u9"}, 409, "other_user"),
        ({"assistant": "nobody"}, 404, "unknown_assistant"),
        ({"collections": ["nowhere"]}, 404, "unknown_collection"),
        ({"session_id": "a b"}, 400, "invalid"),
        ({"session_id": 5}, 400, "invalid"),
        ({"sesion_id": "x"}, 400, "invalid"),
        ({"collections": "handbook"}, 400, "invalid"),
        ([], 400, "invalid"),
    ],
)
def test_what_cannot_begin_is_refused_and_nothing_is_kept(
    body: Any, status: int, code: str, send: Send, shop: User
) -> None:
    factories.conversation("mine", owner=shop)
    Assistant.objects.create(name="telecom")
    answer = send("post", LIST, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert Conversation.objects.count() == 1


def test_a_list_holds_ones_own_and_what_is_chosen_of_it(send: Send, shop: User) -> None:
    factories.turn(factories.conversation("old", owner=shop), "Where is my invoice?")
    asking: dict[str, Any] = {
        "status": Status.AWAITING_USER,
        "clarification_reason": "vague_request",
    }
    factories.turn(factories.conversation("new", owner=shop), **asking)
    Conversation.objects.filter(session="old").update(
        updated=now() - timedelta(days=2), user_id="u1", assistant="telecom"
    )
    foreign = factories.conversation("foreign", owner=User.objects.create_user("bob"))
    factories.turn(foreign, "Where is my invoice?")
    yesterday = (now() - timedelta(days=1)).isoformat()

    def listed(**query: Any) -> list[str]:
        return [each["session_id"] for each in send("get", LIST, query).json()["results"]]

    assert listed() == ["new", "old"]
    assert listed(status="awaiting_user") == listed(since=yesterday) == ["new"]
    assert listed(until=yesterday) == listed(q="INVOICE") == ["old"]
    assert listed(user_id="u1") == listed(assistant="telecom") == listed(session_id="old")
    assert listed(q="%") == listed(session_id="foreign") == []
    assert listed(page_size=1) == ["new"]
    assert listed(page_size=1, page=2) == ["old"]
    row = send("get", LIST, {"session_id": "old"}).json()["results"][0]
    assert (row["first_message"], row["messages"]) == ("Where is my invoice?", 2)
    admin = factories.key(User.objects.create_user("ops"), scopes=["chat", "admin"])
    assert send("get", LIST, headers=admin).json()["count"] == 3


def test_a_long_list_takes_as_many_queries_as_a_short_one(send: Send, shop: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            send("get", LIST)
        return len(captured)

    handbook = factories.collection("handbook")
    factories.conversation("1", owner=shop).collections.set([handbook])
    queries()  # The first use of a key is noted.
    few = queries()
    for number in range(2, 5):
        factories.conversation(str(number), owner=shop).collections.set([handbook])
    assert queries() == few


def test_a_key_of_some_collections_lists_no_conversation_about_others(
    send: Send, shop: User
) -> None:
    for name in ("handbook", "other"):
        talk = factories.conversation(name, owner=shop)
        talk.collections.set([factories.collection(name)])
        factories.turn(talk)
    bound = factories.key(shop, collections=["handbook"])
    listed = send("get", LIST, headers=bound).json()["results"]
    assert [each["session_id"] for each in listed] == ["handbook"]
    assert send("get", LIST + "other/", headers=bound).status_code == 404
    refused = send("post", LIST, {"session_id": "other"}, headers=bound)
    assert (refused.status_code, refused.json()["code"]) == (409, "other_documents")


def test_a_forgotten_conversation_is_gone_and_the_receipt_says_what_was(
    send: Send, shop: User
) -> None:
    talk = factories.conversation("visitor-17", owner=shop)
    factories.turn(talk)
    answer = send("delete", LIST + "visitor-17/")
    assert (answer.status_code, answer.json()["conversation_id"]) == (200, str(talk.pk))
    removed = answer.json()["removed"]
    assert (removed["conversations"], removed["messages"], removed["turns"]) == (1, 2, 1)
    assert not Envelope.objects.exists()
    for method in ("get", "delete"):
        assert send(method, LIST + "visitor-17/").status_code == 404


def test_only_who_may_delete_conversations_forgets_those_of_others(send: Send, shop: User) -> None:
    where = f"{LIST}{factories.conversation('visitor-17', owner=shop).pk}/"
    ops = User.objects.create_user("ops")
    admin = factories.key(ops, scopes=["chat", "admin"])
    assert send("get", where, headers=admin).status_code == 200
    assert send("delete", where, headers=admin).status_code == 403
    assert send("post", where + "messages/", {"text": "Hi"}, headers=admin).status_code == 403
    ops.user_permissions.add(Permission.objects.get(codename="delete_conversation"))
    assert send("delete", where, headers=admin).status_code == 200


@pytest.mark.usefixtures("listening")
def test_a_message_is_taken_once_under_its_key(send: Send, shop: User) -> None:
    factories.collection()
    factories.conversation("visitor-17", owner=shop)
    where = LIST + "visitor-17/messages/"
    taken, again = (
        send("post", where, {"text": "Days?"}, **{"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert (taken.status_code, again.status_code) == (202, 202)
    assert taken.json() == again.json()
    turn = Envelope.objects.get()
    assert taken.json() == {
        "turn_id": str(turn.pk),
        "events_url": f"/api/turns/{turn.pk}/events/",
    }
    other = send("post", where, {"text": "Years?"}, **{"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    busy = send("post", where, {"text": "Years?"})
    assert (busy.status_code, busy.json()["code"]) == (409, "turn_in_progress")
    assert Message.objects.count() == 1
    assert send("get", where).json()["messages"][0]["text"] == "Days?"


@pytest.mark.parametrize("body", [{}, {"text": 5}, {"text": " "}, {"text": "a", "txt": "b"}])
def test_what_is_no_message_is_refused(body: Any, send: Send, shop: User) -> None:
    factories.conversation("visitor-17", owner=shop)
    answer = send("post", LIST + "visitor-17/messages/", body)
    assert (answer.status_code, set(answer.json()) - {"fields"}) == (400, {"code", "detail"})


def test_a_message_to_staff_begins_no_turn_of_the_assistant(send: Send, shop: User) -> None:
    talk = factories.conversation("visitor-17", owner=shop)
    factories.turn(talk, status=Status.WITH_STAFF)
    taken = send("post", LIST + "visitor-17/messages/", {"text": "Hello?"})
    assert taken.status_code == 202
    assert Envelope.objects.get(pk=taken.json()["turn_id"]).status == Status.WITH_STAFF
    assert talk.messages.latest("created").text == "Hello?"
