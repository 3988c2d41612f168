"""The chat page of one of several assistants."""

from http import HTTPStatus

import pytest
from django.test import Client

from agents.models import Envelope
from conversations.models import Assistant, Conversation
from tests import factories

pytestmark = [pytest.mark.usefixtures("listening"), pytest.mark.django_db]


@pytest.fixture(autouse=True)
def bank() -> Assistant:
    """An assistant with one of two collections."""
    for name in ("loans", "phones"):
        factories.collection(name)
    return Assistant.objects.create(
        name="bank",
        title="Nordbank desk",
        domain_scope="accounts and loans",
        greeting="Good day <b>to you</b>.",
        collections=["loans"],
    )


def open_turn(client: Client, **fields: str) -> Envelope:
    """Ask as the page's script does: without waiting."""
    answer = client.post(
        "/", {"text": "Do unused days end?"} | fields, headers={"Accept": "application/json"}
    )
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.content
    return Envelope.objects.latest("create_ts")


def test_the_address_chooses_an_assistant_and_the_page_is_its_own(client: Client) -> None:
    page = client.get("/?assistant=bank").content.decode()
    assert "<h1>Nordbank desk</h1>" in page
    assert "Good day &lt;b&gt;to you&lt;/b&gt;." in page
    assert '<input type="hidden" name="assistant" value="bank">' in page
    assert "loans" in page
    assert "phones" not in page
    # Of one collection there is nothing to choose.
    assert 'name="collection"' not in page


def test_without_a_greeting_the_page_says_what_it_is_for(client: Client, bank: Assistant) -> None:
    bank.greeting, bank.collections = "", ["loans", "phones"]
    bank.save()
    page = client.get("/?assistant=bank").content.decode()
    assert "Ask in your own words." in page
    assert "accounts and loans" in page
    assert '<option value="phones">phones</option>' in page


def test_without_an_address_it_can_be_chosen(client: Client) -> None:
    page = client.get("/").content.decode()
    assert '<option value="bank">Nordbank desk</option>' in page
    assert open_turn(client, assistant="bank").payload["collections"] == ["loans"]


def test_where_there_are_none_nothing_is_to_be_chosen(client: Client, bank: Assistant) -> None:
    bank.delete()
    assert 'name="assistant"' not in client.get("/").content.decode()
    assert "assistant" not in open_turn(client).memory


@pytest.mark.parametrize("name", ["nobody", "BANK", "bank\0x"])
def test_an_assistant_that_is_not_there_is_not_found(client: Client, name: str) -> None:
    for answer in (
        client.get("/", {"assistant": name}),
        client.post("/", {"text": "Hello?", "assistant": name}),
    ):
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "There is no assistant of that name here." in answer.content.decode()
    assert not Conversation.objects.exists()


def test_a_collection_of_another_one_is_refused(client: Client) -> None:
    answer = client.post("/", {"text": "Hello?", "assistant": "bank", "collection": "phones"})
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert "There is no collection &#x27;phones&#x27; here." in answer.content.decode()


def test_a_conversation_goes_on_with_its_assistant_and_a_new_one_begins_with_it(
    client: Client,
) -> None:
    open_turn(client, assistant="bank")
    name = Conversation.objects.get().session.removeprefix("web-")
    page = client.get(f"/c/{name}/").content.decode()
    assert 'class="button new" href="/?assistant=bank"' in page
    Conversation.objects.update(status=Conversation.Status.OPEN)
    assert open_turn(client, conversation=name).payload["assistant"]["name"] == "bank"
    Conversation.objects.update(status=Conversation.Status.OPEN)
    Assistant.objects.create(name="shop")
    other = client.post("/", {"text": "Hello?", "conversation": name, "assistant": "shop"})
    assert other.status_code == HTTPStatus.CONFLICT
