"""Filters: of which documents one message is answered."""

from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from agents.models import Envelope
from conversations.errors import UnusableFilter
from conversations.models import Conversation
from conversations.services import Asker, Filters, ask

pytestmark = [pytest.mark.usefixtures("listening"), pytest.mark.django_db]


def post(client: Client, **body: Any) -> Any:
    client.force_login(User.objects.get_or_create(username="ann")[0])
    message = {"message": "Do unused days end?", "wait": False}
    return client.post("/api/chat/", message | body, content_type="application/json")


def test_filters_go_with_their_message_alone(client: Client) -> None:
    answer = post(client, languages=["de", "pt-BR"], audience=" staff ")
    assert answer.status_code == HTTPStatus.ACCEPTED
    payload = Envelope.objects.get().payload
    assert (payload["languages"], payload["audience"]) == (["de", "pt-br"], "staff")
    Conversation.objects.update(status=Conversation.Status.OPEN)
    ask("And then?", Asker(User.objects.get()), session=answer.json()["session_id"])
    payload = Envelope.objects.latest("create_ts").payload
    assert (payload["languages"], payload["audience"]) == ([], "")


@pytest.mark.parametrize("filters", [{"languages": ["german!"]}, {"audience": "x" * 101}])
def test_what_no_document_can_have_is_refused_before_anything_is_stored(
    client: Client, filters: dict[str, Any]
) -> None:
    answer = post(client, **filters)
    assert (answer.status_code, answer.json()["code"]) == (HTTPStatus.BAD_REQUEST, "invalid")
    assert answer.json()["fields"].keys() == filters.keys()
    with pytest.raises(UnusableFilter):
        Filters(**filters)
    assert not Conversation.objects.exists()


def test_the_terminal_refuses_them_in_the_same_words() -> None:
    with pytest.raises(CommandError, match="'de!' is no language tag"):
        call_command("chat", "-q", "Do unused days end?", "--language", "de!")
