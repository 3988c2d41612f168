"""What the chat page refuses, in words and with the right status."""

from http import HTTPStatus

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from agents.names import Status
from conversations.models import Conversation
from tests import factories
from tests.conversations.conftest import NAME, PAGE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "The message is empty"),
        (" \n\t ", "The message is empty"),
        ("too long " * 1000, "at most 8,000 are allowed"),
        ("a\0b", "null character"),
    ],
)
def test_an_unusable_question_is_refused_in_words_and_kept(
    client: Client, db: None, text: str, reason: str
) -> None:
    response = client.post("/", {"text": text})

    assert response.status_code == HTTPStatus.BAD_REQUEST
    page = response.content.decode()
    assert reason in page
    assert text in page
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("name", ["nowhere", "a\0b", "<b>"])
def test_an_unknown_collection_is_not_found(client: Client, db: None, name: str) -> None:
    factories.collection("handbook")

    response = client.post("/", {"text": "Do unused days end?", "collection": name})

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "There is no collection" in response.content.decode()


def test_without_workers_a_question_is_refused_and_kept(client: Client, db: None) -> None:
    response = client.post("/", {"text": "Do unused days end?"})

    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    page = response.content.decode()
    assert "not at work right now" in page
    assert "manage.py" not in page
    assert "Do unused days end?</textarea>" in page
    assert response["Retry-After"] == "5"
    assert not Conversation.objects.exists()


def test_staff_are_told_how_to_start_a_worker(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("ada", is_staff=True))

    page = client.post("/", {"text": "Do unused days end?"}).content.decode()

    assert "No worker listens for: manager" in page
    assert "manage.py workers manager" in page


def test_a_second_question_waits_for_the_first(
    client: Client, listening: None, talk: Conversation
) -> None:
    factories.turn(talk, status=Status.RUNNING)
    talk.status = Conversation.Status.RUNNING
    talk.save()

    response = client.post("/", {"text": "And then?", "conversation": NAME})

    assert response.status_code == HTTPStatus.CONFLICT
    page = response.content.decode()
    assert "still being answered" in page
    assert "And then?</textarea>" in page
    assert 'http-equiv="refresh"' not in page


def test_a_failed_turn_shows_its_number_and_no_traceback(
    client: Client, talk: Conversation
) -> None:
    envelope = factories.failed_turn(talk, ValueError("secret path"))

    page = client.get(PAGE).content.decode()

    assert envelope.error_id in page
    assert "secret path" not in page
    # And can be asked again.
    assert f'name="replaces" value="{envelope.pk}"' in page


def test_a_foreign_site_cannot_ask(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/", {"text": "Do unused days end?"})

    assert response.status_code == HTTPStatus.FORBIDDEN


def test_for_staff_only_nobody_else_gets_in(
    client: Client, talk: Conversation, settings: LazySettings
) -> None:
    settings.START_PAGE = "staff"
    factories.turn(talk, response="They do.")
    factories.collection("handbook")

    welcome = client.get("/")
    shown = client.get(PAGE)
    asked = client.post("/", {"text": "/help"})

    assert welcome.status_code == HTTPStatus.OK
    assert "/admin/login/?next=/" in welcome.content.decode()
    assert "handbook" not in welcome.content.decode()
    assert shown.status_code == asked.status_code == HTTPStatus.FORBIDDEN
    assert "They do." not in shown.content.decode()


def test_for_staff_only_being_logged_in_is_not_enough(
    client: Client, db: None, settings: LazySettings
) -> None:
    settings.START_PAGE = "staff"
    client.force_login(User.objects.create_user("visitor"))

    assert "<textarea" not in client.get("/").content.decode()


def test_for_staff_only_staff_ask_in_their_own_name(
    client: Client, working: None, settings: LazySettings
) -> None:
    settings.START_PAGE = "staff"
    ada = User.objects.create_user("ada", is_staff=True)
    client.force_login(ada)

    response = client.post("/", {"text": "/help"}, follow=True)

    assert response.status_code == HTTPStatus.OK
    assert Conversation.objects.get().owner == ada
