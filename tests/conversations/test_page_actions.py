"""What can be done on the chat page beside asking: by who began the conversation, and how often."""

import re
from http import HTTPStatus
from uuid import UUID

import pytest
from django.test import Client

from agents.models import Envelope
from agents.names import Status
from conversations.models import Conversation, Feedback, Message
from conversations.page import SESSION_KEY
from tests import factories
from tests.conversations.conftest import NAME, PAGE, SCRIPTED, shown


def test_suggestions_are_buttons_that_reply_in_the_conversation(
    client: Client, talk: Conversation
) -> None:
    factories.turn(
        talk,
        status=Status.AWAITING_USER,
        response="Which?\n- The holidays\n- Something else",
        suggested_actions=["The holidays", "Type /help to see what I can do"],
        clarification_reason="vague_request",
    )

    page = shown(client)

    assert re.search(r'<button[^>]* form="act" name="text" value="The holidays"', page)
    assert re.search(r'value="/help"[^>]*>What can you do\?<', page)
    # What is a button is not told a second time.
    assert page.count("The holidays") == 2
    assert "<li>Something else</li>" in page
    assert "Your reply" in page


def test_suggestions_of_an_earlier_turn_are_gone(client: Client, talk: Conversation) -> None:
    factories.turn(talk, suggested_actions=["The holidays"])
    factories.turn(talk, "And then?")

    assert 'value="The holidays"' not in shown(client)


def test_a_turn_is_stopped_by_who_asked(client: Client, talk: Conversation) -> None:
    envelope = factories.turn(talk, status=Status.RUNNING)

    client.post(f"/turns/{envelope.pk}/stop/")

    envelope.refresh_from_db()
    assert envelope.status == Status.CANCELLED
    assert "I stopped working on this question" in shown(client)


def test_thumbs_and_a_comment_are_kept_and_the_latest_word_holds(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.turn(talk)
    address = f"/turns/{envelope.pk}/rate/"

    for rating, comment in (("up", ""), ("down", "That is from last year.")):
        client.post(address, {"rating": rating, f"comment-{envelope.pk}": comment})

    assert client.post(address, {"rating": "so"}).status_code == HTTPStatus.BAD_REQUEST
    told = Feedback.objects.get()
    assert (told.by, told.rating, told.comment) == (None, "down", "That is from last year.")
    page = shown(client)
    assert re.search(r'value="down" aria-pressed="true"', page)
    assert "That is from last year.</textarea>" in page


def test_a_conversation_is_forgotten_by_who_had_it(client: Client, talk: Conversation) -> None:
    factories.turn(talk)

    assert client.post(f"{PAGE}forget/", follow=True).status_code == HTTPStatus.OK

    assert not Message.objects.exists()
    assert client.get(PAGE).status_code == HTTPStatus.NOT_FOUND
    assert client.session[SESSION_KEY] == []


def test_a_message_asked_otherwise_takes_its_place(
    client: Client, talk: Conversation, listening: None
) -> None:
    factories.turn(talk, "Who pays?")
    open_question = {"question": "When?", "reason": "vague_request", "options": []}
    Conversation.objects.update(topic="pay", open_clarification=open_question)
    talk.refresh_from_db()
    wrong = factories.turn(talk, "Do unsued days end?", response="Of what?")
    Conversation.objects.update(topic="wrong", open_clarification=None)
    factories.turn(talk, "Holidays!", response="I see.")

    sent = {"text": "Do unused days end?", "conversation": NAME, "replaces": str(wrong.pk)}
    answer = client.post("/", sent, headers=SCRIPTED)

    assert answer.status_code == HTTPStatus.ACCEPTED
    memory = Envelope.objects.latest("create_ts").memory
    assert [each["text"] for each in memory["history"]] == ["Who pays?", "Yes."]
    assert (memory["topic"], memory["open_clarification"]) == ("pay", open_question)
    page = shown(client)
    assert page.index("Asked before") < page.index("Do unsued days end?") < page.index("I see.")
    assert page.count('id="e-') == 2


def test_a_failed_question_is_asked_again_without_writing_it(
    client: Client, talk: Conversation, listening: None
) -> None:
    failed = factories.failed_turn(talk, ValueError("x"))

    client.post("/", {"replaces": failed.pk, "conversation": NAME}, headers=SCRIPTED)

    assert Envelope.objects.latest("create_ts").memory["text"] == "Do unused days end?"
    assert Envelope.objects.latest("create_ts").memory["history"] == []


@pytest.mark.parametrize("turn", [str(UUID(int=1)), "x"])
def test_what_was_never_said_cannot_be_taken_back(
    client: Client, talk: Conversation, listening: None, turn: str
) -> None:
    factories.turn(talk)

    sent = {"text": "When?", "replaces": turn, "conversation": NAME}
    status = client.post("/", sent, headers=SCRIPTED).status_code

    assert status == (HTTPStatus.ACCEPTED if turn == "x" else HTTPStatus.NOT_FOUND)
    assert not Message.objects.filter(taken_back=True).exists()
