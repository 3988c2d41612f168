"""A conversation is told to its user while it is with staff, and to nobody else."""

import uuid
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from agents.names import Status
from agents.steps import events
from conversations import conversation_events, handover, stream
from conversations.erasure import forget
from conversations.models import Conversation, Handover, Message
from conversations.services import Asker, ask
from tests import factories
from tests.conversations.conftest import Followed
from tests.factories import key

Following = Callable[..., Followed]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def staffed(settings: Settings) -> None:
    """Somebody is there."""
    settings.HANDOVER = True


@pytest.fixture
def shop() -> User:
    return User.objects.create_user("shop")


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", is_staff=True)


@pytest.fixture
def row(shop: User) -> Handover:
    """A conversation of the shop's that waits for staff: a question and one sentence."""
    talk = factories.conversation("visitor-17", owner=shop)
    factories.turn(talk, "A human!", status=Status.WITH_STAFF, small_talk="person")
    return talk.handovers.get()


def address(name: object, what: str = "messages") -> str:
    return reverse(f"conversation-{what}", args=[name])


@pytest.fixture
def following(port: int) -> Iterator[Following]:
    """Follow a conversation of this name with these headers, from after a message."""
    opened: list[Followed] = []

    def begin(headers: dict[str, str], name: object, after: object = "") -> Followed:
        query = f"?after={after}" if after else ""
        opened.append(Followed(port, headers, address(name, "events") + query))
        return opened[-1]

    yield begin
    for followed in opened:
        followed.close()


def last(row: Handover) -> str:
    message = row.conversation.messages.order_by("created").last()
    assert message is not None
    return str(message.pk)


def test_a_client_reads_what_was_said_after_what_it_knows(
    client: Client, shop: User, anna: User, row: Handover
) -> None:
    sent = key(shop)
    first = client.get(address("visitor-17"), headers=sent).json()
    assert first["status"] == "with_staff"
    assert [each["author"] for each in first["messages"]] == ["user", "assistant"]
    known = first["messages"][-1]["id"]
    handover.say(row.pk, anna, "Hello")
    handover.give_back(row.pk, anna, seen=None, note="not for the user")
    then = client.get(address(row.conversation_id), {"after": known}, headers=sent).json()
    assert [(each["author"], each["text"]) for each in then["messages"]] == [("staff", "Hello")]
    assert (then["status"], then["session_id"], then["more"]) == ("open", "visitor-17", False)


def test_a_long_conversation_is_read_page_by_page(
    client: Client, shop: User, row: Handover
) -> None:
    for number in range(120):
        row.conversation.messages.create(role=Message.Author.STAFF, text=str(number))
    page = client.get(address("visitor-17"), headers=key(shop)).json()
    assert (len(page["messages"]), page["more"]) == (100, True)
    query = {"after": page["messages"][-1]["id"]}
    rest = client.get(address("visitor-17"), query, headers=key(shop)).json()
    assert (len(rest["messages"]), rest["more"]) == (22, False)


@pytest.mark.parametrize("what", ["messages", "events"])
def test_a_conversation_of_another_is_not_there(
    client: Client, shop: User, anna: User, row: Handover, what: str
) -> None:
    stranger = key(User.objects.create_user("stranger"))
    for name in ("visitor-17", row.conversation_id, uuid.uuid4(), "a\x00b", "-"):
        response = client.get(address(name, what), headers=stranger)
        assert response.status_code == HTTPStatus.NOT_FOUND
        assert response.json()["code"] == "not_found"
    assert client.get(address("visitor-17", what)).status_code == HTTPStatus.UNAUTHORIZED
    assert (
        client.get(
            address(row.conversation_id), headers=key(anna, scopes=["chat", "admin"])
        ).status_code
        == HTTPStatus.OK
    )


@pytest.mark.parametrize("what", ["messages", "events"])
@pytest.mark.parametrize(
    ("after", "status", "code"), [("7", 400, "invalid"), ("other", 404, "unknown_message")]
)
def test_a_message_that_is_not_of_the_conversation_is_refused(
    client: Client, shop: User, row: Handover, what: str, after: str, status: int, code: str
) -> None:
    other = factories.conversation("other", owner=shop)
    factories.turn(other)
    strange = str(other.messages.all()[0].pk) if after == "other" else after
    response = client.get(address("visitor-17", what), {"after": strange}, headers=key(shop))
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_what_is_said_arrives_while_it_is_said(
    following: Following, shop: User, anna: User, row: Handover
) -> None:
    followed = following(key(shop), "visitor-17", last(row))
    assert followed.next()["data"] == {"status": "with_staff", "taken": False}
    handover.take(row.pk, anna)
    assert followed.next()["data"] == {"status": "with_staff", "taken": True}
    message = handover.say(row.pk, anna, "Hello")
    told = followed.next()
    assert (told["event"], told["id"]) == ("message", str(message.pk))
    assert (told["data"]["author"], told["data"]["text"]) == ("staff", "Hello")
    ask("It is about invoice 7.", Asker(shop), session="visitor-17")
    assert followed.next()["data"]["text"] == "It is about invoice 7."
    handover.give_back(row.pk, anna, seen=_newest(row).created, note="secret")
    assert followed.next()["data"] == {"status": "open", "taken": False}


def _newest(row: Handover) -> Message:
    message = row.conversation.messages.order_by("created").last()
    assert message is not None
    return message


def test_who_comes_back_is_told_what_they_missed(
    following: Following, shop: User, anna: User, row: Handover
) -> None:
    seen = handover.say(row.pk, anna, "one")
    handover.say(row.pk, anna, "two")
    # Redis knows nothing of it: the table does.
    events.connection().delete(handover.bell(row.conversation_id))
    headers = key(shop) | {"Last-Event-ID": str(seen.pk)}
    followed = following(headers, "visitor-17", after=str(uuid.uuid4()))
    assert followed.next()["data"]["text"] == "two"


def test_from_its_first_message_who_names_none(
    following: Following, shop: User, row: Handover
) -> None:
    followed = following(key(shop), row.conversation_id)
    assert [followed.next()["data"].get("author") for _ in range(3)] == ["user", "assistant", None]


def test_a_bell_that_was_lost_costs_a_moment(
    following: Following, shop: User, row: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_events, "LONGEST_BLOCK_MS", 100)
    followed = following(key(shop), "visitor-17", last(row))
    followed.next()
    row.conversation.message(Message.Author.STAFF, "Hello").save()
    assert followed.next()["data"]["text"] == "Hello"


def test_a_stream_ends_so_that_nobody_follows_for_ever(
    following: Following, shop: User, row: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_events, "LONGEST_BLOCK_MS", 50)
    monkeypatch.setattr(conversation_events, "LONGEST_SECONDS", 0.2)
    told = following(key(shop), "visitor-17", last(row)).rest()
    assert [event["event"] for event in told] == ["status"]


def test_a_forgotten_conversation_ends_its_stream(
    following: Following, shop: User, row: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_events, "LONGEST_BLOCK_MS", 100)
    followed = following(key(shop), "visitor-17", last(row))
    followed.next()
    forget(row.conversation)
    assert followed.next()["data"] == {"status": "forgotten", "taken": False}
    assert followed.next() == {}


def test_the_browser_of_the_conversation_follows_by_its_session(
    following: Following, client: Client, talk: Conversation, settings: Any
) -> None:
    factories.turn(talk, "A human!", status=Status.WITH_STAFF, small_talk="person")
    session = {"Cookie": f"sessionid={client.session.session_key}", "Accept": "text/event-stream"}
    followed = following(session, talk.pk)
    assert followed.next()["data"]["text"] == "A human!"
    settings.START_PAGE = "staff"
    closed = following(session, talk.pk)
    assert closed.response.status == HTTPStatus.UNAUTHORIZED


def test_more_than_a_process_can_follow_are_sent_away(
    following: Following, shop: User, row: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second half of the places is for turns.
    monkeypatch.setattr(stream, "MOST_STREAMS", 2)
    assert following(key(shop), "visitor-17").response.status == HTTPStatus.OK
    followed = following(key(shop), "visitor-17")
    assert followed.response.status == HTTPStatus.TOO_MANY_REQUESTS


def test_the_schema_describes_both_with_an_example(client: Client) -> None:
    schema = client.get("/api/schema/", {"format": "json"}).json()
    for what in ("messages", "events"):
        shown = schema["paths"][f"/api/conversations/{{name}}/{what}/"]["get"]
        (content,) = shown["responses"]["200"]["content"].values()
        assert "WithStaff" in content["examples"]
