"""Staff answer through the API what waits for them, as far as their rights go."""

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from agents.names import Status
from conversations.assistants import Assistant
from conversations.grants import Grant
from conversations.models import Conversation, Handover
from conversations.services import Asker, ask
from tests import factories
from tests.factories import key

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/api/admin/handovers/"
UNKNOWN = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(autouse=True)
def staffed(settings: Settings) -> None:
    """Somebody is there."""
    settings.HANDOVER = True


@pytest.fixture
def row() -> Handover:
    """A conversation that waits for staff."""
    talk = factories.conversation("visitor-17")
    factories.turn(talk, "A human!", status=Status.WITH_STAFF, small_talk="person")
    return talk.handovers.get()


def desk(*rights: str) -> dict[str, str]:
    """The key of a program whose user has these rights."""
    user = User.objects.create_user("desk", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return key(user, scopes=["chat", "admin"])


def do(client: Client, row: Handover, sent: dict[str, str], **body: Any) -> Any:
    return client.post(f"{ADDRESS}{row.pk}/", body, "application/json", headers=sent)


def test_a_program_reads_the_inbox_answers_and_gives_back(client: Client, row: Handover) -> None:
    sent = desk("view_handover", "change_handover")
    (listed,) = client.get(ADDRESS, {"box": "new"}, headers=sent).json()["results"]
    assert (listed["id"], listed["session_id"], listed["why"]) == (row.pk, "visitor-17", "person")
    said = do(client, row, sent, action="say", text="Which invoice?")
    assert said.status_code == HTTPStatus.OK
    assert (said.json()["assigned"], said.json()["waiting_since"]) == ("desk", None)
    assert client.get(ADDRESS, {"box": "new"}, headers=sent).json()["count"] == 0
    ask("Number 7.", Asker(None), session="visitor-17")
    refused = do(client, row, sent, action="give_back")
    assert refused.status_code == HTTPStatus.CONFLICT
    assert refused.json()["code"] == "handover"
    address = f"/api/conversations/{row.conversation_id}/messages/"
    seen = client.get(address, headers=sent).json()["messages"][-1]["id"]
    returned = do(client, row, sent, action="give_back", note="Invoice 7.", seen=seen)
    assert (returned.status_code, returned.json()["note"]) == (HTTPStatus.OK, "Invoice 7.")
    assert returned.json()["returned"]
    assert Conversation.objects.get().status == Conversation.Status.OPEN
    assert client.get(f"{ADDRESS}{row.pk}/", headers=sent).json() == returned.json()


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"action": "sing"}, (400, "invalid")),
        ({}, (400, "invalid")),
        ({"action": "say", "text": " "}, (400, "unusable_text")),
        ({"action": "close", "seen": UNKNOWN}, (404, "unknown_message")),
        ({"action": "close", "seen": "7"}, (400, "invalid")),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    client: Client, row: Handover, body: dict[str, str], refusal: tuple[int, str]
) -> None:
    response = do(client, row, desk("change_handover"), **body)
    assert (response.status_code, response.json()["code"]) == refusal
    row.refresh_from_db()
    assert row.is_open


def test_who_may_only_look_answers_nobody(client: Client, row: Handover) -> None:
    sent = desk("view_handover")
    assert client.get(f"{ADDRESS}{row.pk}/", headers=sent).status_code == HTTPStatus.OK
    assert do(client, row, sent, action="take").status_code == HTTPStatus.FORBIDDEN


def test_without_rights_or_a_key_nothing_is_seen(client: Client, row: Handover) -> None:
    sent = desk()
    for address in (ADDRESS, f"{ADDRESS}{row.pk}/"):
        assert client.get(address, headers=sent).status_code == HTTPStatus.FORBIDDEN
        assert client.get(address).status_code == HTTPStatus.UNAUTHORIZED


def test_a_key_that_is_bound_to_an_assistant_reaches_the_conversations_of_no_other(
    client: Client, row: Handover
) -> None:
    sent = desk("view_handover", "change_handover")
    bank = Assistant.objects.create(name="bank")
    Grant.objects.update(assistant=bank)
    assert client.get(ADDRESS, headers=sent).json()["count"] == 0
    assert do(client, row, sent, action="take").status_code == HTTPStatus.NOT_FOUND
    Conversation.objects.update(assistant="bank")
    assert do(client, row, sent, action="take").status_code == HTTPStatus.OK


def test_what_is_not_there_is_not_found(client: Client, row: Handover) -> None:
    sent = desk("view_handover")
    assert client.get(f"{ADDRESS}{row.pk + 1}/", headers=sent).status_code == HTTPStatus.NOT_FOUND
    assert client.get(ADDRESS, {"box": "attic"}, headers=sent).status_code == HTTPStatus.BAD_REQUEST
