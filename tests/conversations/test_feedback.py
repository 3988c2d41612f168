"""Feedback: one word of each user on an answer, the latest, and staff read it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import Envelope
from agents.names import Status
from conversations.feedback import LONGEST_COMMENT
from conversations.models import Feedback
from tests import factories

pytestmark = pytest.mark.django_db
LIST = "/api/admin/feedback/"


@pytest.fixture
def turn() -> Envelope:
    """An answer to a user of the shop's."""
    shop = User.objects.create_user("shop")
    talk = factories.conversation(owner=shop)
    return factories.turn(talk, response="In March.", route="documentation")


@pytest.fixture
def key(turn: Envelope) -> dict[str, str]:
    """The header of the shop's key."""
    return factories.key(User.objects.get(username="shop"))


def say(client: Client, turn: Envelope, headers: dict[str, str], **body: Any) -> Any:
    where = f"/api/turns/{turn.pk}/feedback/"
    return client.post(where, body, content_type="application/json", headers=headers)


def test_the_latest_word_of_each_user_holds(
    client: Client, turn: Envelope, key: dict[str, str]
) -> None:
    first = say(client, turn, key, rating="up")
    second = say(client, turn, key, rating="down", comment="It is April.")
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() | {"turn_id": str(turn.pk), "rating": "up", "comment": ""} == first.json()
    assert second.json()["created"] == first.json()["created"] < second.json()["updated"]
    ops = factories.key(User.objects.create_user("ops"), scopes=["chat", "admin"])
    assert say(client, turn, ops, rating="up").status_code == 201
    said = Feedback.objects.values_list("by__username", "rating", "comment")
    assert {*said} == {("shop", "down", "It is April."), ("ops", "up", "")}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"rating": "sideways"},
        {"rating": 1},
        {"rating": "up", "comment": 5},
        {"rating": "up", "comment": "x" * (LONGEST_COMMENT + 1)},
        {"rating": "up", "coment": ""},
    ],
)
def test_what_is_no_feedback_is_refused(
    body: dict[str, Any], client: Client, turn: Envelope, key: dict[str, str]
) -> None:
    assert say(client, turn, key, **body).status_code == 400
    assert not Feedback.objects.exists()


def test_nothing_is_said_of_an_answer_that_is_not_there_yet(
    client: Client, key: dict[str, str]
) -> None:
    talk = factories.conversation("b", owner=User.objects.get(username="shop"))
    answer = say(client, factories.turn(talk, status=Status.RUNNING), key, rating="up")
    assert (answer.status_code, answer.json()["code"]) == (409, "turn_in_progress")


def test_staff_read_what_was_said_with_the_question_and_the_answer(
    client: Client, turn: Envelope, key: dict[str, str]
) -> None:
    say(client, turn, key, rating="down", comment="It is April.")
    other = factories.turn(factories.conversation("b"), "And then?")
    Feedback.objects.create(turn=other, rating="up")
    ops = User.objects.create_user("ops")
    both, admin = (factories.key(ops, scopes=each) for each in (["chat", "admin"], ["admin"]))

    def listed(**query: Any) -> list[Any]:
        headers = query.pop("headers", both)
        rows: list[Any] = client.get(LIST, query, headers=headers).json()["results"]
        return rows

    assert [row["turn_id"] for row in listed()] == [str(other.pk), str(turn.pk)]
    (down,) = listed(rating="down")
    assert (
        down
        | {
            "by": "shop",
            "comment": "It is April.",
            "question": "Do unused days end?",
            "answer": "In March.",
            "route": "documentation",
            "conversation_id": str(turn.conversation_id),
        }
        == down
    )
    for query in ({"turn_id": turn.pk}, {"conversation_id": turn.conversation_id}):
        assert listed(**query) == [down]
    assert listed(since=down["updated"], until=down["updated"]) == []
    (unread,) = listed(headers=admin, rating="down")
    assert (unread["question"], unread["answer"], unread["rating"]) == (None, None, "down")
    for wrong in ({"rating": ""}, {"ratng": "up"}, {"since": "yesterday"}, {"page_size": "null"}):
        assert client.get(LIST, wrong, headers=both).status_code == 400


def test_feedback_stays_when_its_user_goes(client: Client, turn: Envelope) -> None:
    ops = User.objects.create_user("ops")
    say(client, turn, factories.key(ops, scopes=["chat", "admin"]), rating="up")
    ops.delete()
    assert Feedback.objects.get().by is None
