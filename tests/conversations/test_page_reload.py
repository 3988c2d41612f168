"""A page that is loaded again, at whatever moment, loses nothing: without a browser, over HTTP."""

from http import HTTPStatus

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from agents import envelopes
from agents.models import Envelope
from agents.names import Status
from agents.steps import events
from tests.conversations.conftest import SCRIPTED, Followed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("listening")]
NAME = "n" * 32
PAGE = f"/c/{NAME}/"
SENT = {"text": "Do unused days end?", "conversation": NAME, "key": "k" * 32}


def followed(port: int, client: Client, turn: Envelope) -> Followed:
    """Follow a turn as a page of this browser does."""
    headers = {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}
    return Followed(port, headers, reverse("turn-events", args=[turn.pk]))


def tell(turn: Envelope, *words: str) -> None:
    for text in words:
        events.publish(turn.target_list, "token", step=1, attempt=1, text=text, replaces=False)


def heard(page: Followed, count: int) -> str:
    """The words of so many tokens that come next."""
    told = [page.next() for _ in range(count)]
    assert {each["event"] for each in told} == {"token"}
    return "".join(each["data"]["text"] for each in told)


def test_before_during_and_after_the_answer(client: Client, port: int) -> None:
    # The question was taken, and the page was loaded again before it heard of that.
    assert Client().post("/", SENT, headers=SCRIPTED).status_code == HTTPStatus.ACCEPTED
    assert client.get(PAGE).status_code == HTTPStatus.NOT_FOUND
    assert client.post("/", SENT, headers=SCRIPTED).status_code == HTTPStatus.ACCEPTED
    turn = Envelope.objects.get()

    shown = client.get(PAGE).content.decode()
    assert "Do unused days end?" in shown
    assert f'data-events="/api/turns/{turn.pk}/events/"' in shown
    first = followed(port, client, turn)
    assert first.next()["event"] == "workflow_start"
    tell(turn, "Unused ", "days ")
    assert heard(first, 2) == "Unused days "

    # Loaded again in the middle, with a second tab beside it: both hear all from the beginning.
    first.close()
    assert f'data-turn="{turn.pk}"' in client.get(PAGE).content.decode()
    tabs = [followed(port, client, turn) for _ in range(2)]
    assert [tab.next()["event"] for tab in tabs] == ["workflow_start"] * 2
    tell(turn, "end.")
    assert [heard(tab, 3) for tab in tabs] == ["Unused days end."] * 2
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=turn.pk)
        locked.payload["response"] = "Unused days end."
        envelopes.end(locked, Status.COMPLETED)
    for tab in tabs:
        assert tab.next()["event"] == "workflow_complete"
        tab.close()

    # And after it, also when the question is sent once more.
    assert client.post("/", SENT, headers=SCRIPTED).json()["status"] == Status.COMPLETED
    shown = client.get(PAGE).content.decode()
    assert "<p>Unused days end.</p>" in shown
    assert "data-events" not in shown
    assert Envelope.objects.count() == 1
