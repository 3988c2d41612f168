"""A conversation with staff on the chat page, as its user sees it."""

from http import HTTPStatus

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agents.models import Envelope
from agents.names import Status
from conversations import handover
from conversations.models import Conversation, Handover
from tests import factories
from tests.conversations.conftest import NAME, PAGE

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def staffed(settings: Settings) -> None:
    """Somebody is there."""
    settings.HANDOVER = True


@pytest.fixture
def asked(talk: Conversation) -> Envelope:
    """The turn in which the browser's user asked for a person."""
    said = {"small_talk": "person", "response": "A person **will** answer."}
    return factories.turn(talk, SCRIPT, status=Status.WITH_STAFF, **said)


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", is_staff=True)


def page(client: Client) -> str:
    return client.get(PAGE).content.decode()


def test_the_page_shows_what_was_said_by_whom_and_no_note(
    client: Client, asked: Envelope, anna: User
) -> None:
    row = Handover.objects.get()
    assert "A person will answer you here." in page(client)
    handover.say(row.pk, anna, f"{SCRIPT} See https://example.org/7")
    shown = page(client)
    assert "You are talking to our staff." in shown
    assert "A person <strong>will</strong> answer." in shown
    assert shown.count('words" dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;') == 2
    assert SCRIPT not in shown
    assert '<a href="https://example.org/7" rel="nofollow">' in shown
    handover.give_back(row.pk, anna, seen=None, note="Beware of this one.")
    shown = page(client)
    assert "The assistant answers again." in shown
    assert "Beware" not in shown


def test_the_page_allows_no_script_but_files_of_ours(client: Client, asked: Envelope) -> None:
    response = client.get(PAGE)
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]


def test_a_message_to_staff_is_sent_from_the_page_with_and_without_a_script(
    client: Client, asked: Envelope, talk: Conversation
) -> None:
    sent = {"text": "It is about invoice 7.", "conversation": NAME}
    told = client.post("/", sent, headers={"Accept": "application/json"})
    assert told.status_code == HTTPStatus.ACCEPTED
    assert told.json()["status"] == "with_staff"
    plain = client.post("/", sent | {"text": "Or 8."}, follow=True)
    assert "It is about invoice 7." in plain.content.decode()
    assert "Or 8." in plain.content.decode()
    assert talk.messages.count() == 4


def test_a_message_that_cannot_be_taken_stays_in_its_field(
    client: Client, asked: Envelope, settings: Settings
) -> None:
    settings.MAX_QUESTION_LENGTH = 10
    sent = {"text": "It is about invoice 7.", "conversation": NAME}
    refused = client.post("/", sent)
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "It is about invoice 7.</textarea>" in refused.content.decode()


@pytest.mark.usefixtures("listening")
def test_after_it_was_given_back_the_next_message_is_the_assistants(
    client: Client, asked: Envelope, anna: User
) -> None:
    handover.give_back(Handover.objects.get().pk, anna, seen=None)
    sent = {"text": "How do I pay?", "conversation": NAME}
    told = client.post("/", sent, headers={"Accept": "application/json"}).json()
    assert told["status"] == "running"
    assert "Looking for the answer" in client.get(told["page"]).content.decode()


def test_a_page_hears_when_staff_take_over_or_decide_a_refund(
    client: Client, talk: Conversation, settings: Settings
) -> None:
    factories.turn(talk)
    address = f'data-follow="/api/conversations/{talk.pk}/events/"'
    assert address in page(client)
    settings.HANDOVER = False
    assert address not in page(client)
    talk.billing_case_id = "R-1"
    talk.save()
    assert address in page(client)


def test_another_browser_sees_nothing_of_it(asked: Envelope) -> None:
    response = Client().get(PAGE)
    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "alert(1)" not in response.content.decode()
