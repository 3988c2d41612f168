"""Which assistant answers a message, and what of the documents it may look into."""

from collections.abc import Callable
from http import HTTPStatus
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models import ProtectedError
from django.test import Client
from knox.models import AuthToken

from agents.models import Envelope
from agents.names import Status
from conversations.errors import OtherAssistant, OtherUser, UnknownAssistant
from conversations.grants import Bounds
from conversations.models import Assistant, Conversation, Message
from conversations.reach import assistants_of, bound_to
from conversations.services import Asker, ask
from knowledge.models import Collection, Document
from tests import factories

pytestmark = [pytest.mark.usefixtures("listening"), pytest.mark.django_db]

UNKNOWN = {"code": "unknown_assistant", "detail": "There is no assistant of that name here."}
OTHER = "This conversation began with another assistant, or with none: begin a new one."

Post = Callable[..., Any]


@pytest.fixture
def two() -> tuple[Assistant, Assistant]:
    """Two assistants with a collection each, and a third collection that is nobody's."""
    for name in ("phones", "loans", "secrets"):
        factories.collection(name)
    return (
        Assistant.objects.create(name="telecom", collections=["phones"], audience="customers"),
        Assistant.objects.create(name="bank", collections=["loans"]),
    )


@pytest.fixture
def key(client: Client) -> Callable[..., Post]:
    """Make keys: each is a function that posts a message with it."""

    def make(name: str, assistant: Assistant | None = None) -> Post:
        user, _ = User.objects.get_or_create(username=name)
        sent = factories.key(user, assistant=assistant)

        def post(**body: Any) -> Any:
            return client.post(
                "/api/chat/",
                {"message": "Do unused days end?", "wait": False} | body,
                content_type="application/json",
                headers=sent,
            )

        return post

    return make


def told(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["detail"]


def latest() -> dict[str, Any]:
    payload: dict[str, Any] = Envelope.objects.latest("create_ts").payload
    Conversation.objects.update(status=Conversation.Status.OPEN)
    return payload


def test_without_an_assistant_the_memory_says_nothing_of_one(key: Callable[..., Post]) -> None:
    factories.collection("phones")
    answer = key("ann")()
    assert answer.status_code == HTTPStatus.ACCEPTED
    assert "assistant" not in answer.json()["state_excerpt"]
    payload = latest()
    assert "assistant" not in payload
    assert (payload["collections"], payload["enabled_routes"]) == ([], ["documentation"])


def test_an_assistant_is_chosen_by_the_field_and_searches_its_own_collections(
    two: Any, key: Callable[..., Post]
) -> None:
    answer = key("ann")(assistant="telecom")
    assert answer.status_code == HTTPStatus.ACCEPTED
    assert answer.json()["state_excerpt"]["assistant"] == "telecom"
    payload = latest()
    assert payload["assistant"]["name"] == "telecom"
    assert (payload["collections"], payload["audience"]) == (["phones"], "customers")


def test_a_bound_key_asks_its_assistant_without_naming_it(
    two: Any, key: Callable[..., Post]
) -> None:
    bound = key("shop", two[1])
    assert bound().status_code == bound(assistant="bank").status_code == HTTPStatus.ACCEPTED
    assert {each.assistant for each in Conversation.objects.all()} == {"bank"}


@pytest.mark.parametrize("name", ["telecom", "nobody", "BANK", "bank'--", "telecom,bank"])
def test_a_bound_key_reaches_no_other_assistant_and_hears_of_none(
    two: Any, key: Callable[..., Post], name: str
) -> None:
    answer = key("shop", two[1])(assistant=name)
    assert (answer.status_code, answer.json()) == (HTTPStatus.NOT_FOUND, UNKNOWN)
    assert not Conversation.objects.exists()


def test_an_unknown_assistant_is_not_found_and_others_are_not_named(
    two: Any, key: Callable[..., Post]
) -> None:
    answer = key("ann")(assistant="nobody")
    assert (answer.status_code, answer.json()) == (HTTPStatus.NOT_FOUND, UNKNOWN)


@pytest.mark.parametrize("names", [["phones"], ["secrets"], ["loans", "phones"], ["nowhere"]])
def test_no_list_of_collections_opens_those_of_others(
    two: Any, key: Callable[..., Post], names: list[str]
) -> None:
    status, detail = told(key("shop", two[1])(collections=names))
    assert status == HTTPStatus.NOT_FOUND
    assert detail.startswith("There is no collection '")
    assert not {"phones", "secrets", "loans"} - {*names} & {*detail.replace("'", " ").split()}
    assert not Envelope.objects.exists()


def test_another_audience_than_its_own_is_refused(two: Any, key: Callable[..., Post]) -> None:
    post = key("shop", two[0])
    status, detail = told(post(audience="staff"))
    assert (status, detail) == (
        HTTPStatus.BAD_REQUEST,
        "This assistant answers from documents for another audience.",
    )
    assert post(audience="customers").status_code == HTTPStatus.ACCEPTED


def test_titles_for_others_are_not_offered(two: Any, key: Callable[..., Post]) -> None:
    Document.objects.filter(collection__name="phones").update(audience="staff")
    key("shop", two[0])()
    assert latest()["offers"] == []


def test_a_conversation_stays_with_the_assistant_it_began_with(
    two: Any, key: Callable[..., Post]
) -> None:
    post = key("ann")
    assert post(assistant="bank", session_id="s").status_code == HTTPStatus.ACCEPTED
    latest()
    assert told(post(assistant="telecom", session_id="s")) == (HTTPStatus.CONFLICT, OTHER)
    assert post(session_id="s").status_code == HTTPStatus.ACCEPTED
    assert latest()["collections"] == ["loans"]


def test_a_conversation_without_one_is_not_taken_over(two: Any, key: Callable[..., Post]) -> None:
    post = key("ann")
    assert post(session_id="s").status_code == HTTPStatus.ACCEPTED
    latest()
    assert told(post(assistant="bank", session_id="s")) == (HTTPStatus.CONFLICT, OTHER)


def test_two_keys_of_one_user_do_not_share_what_is_said(
    two: Any, key: Callable[..., Post], client: Client
) -> None:
    one, other = key("shop", two[0]), key("shop", two[1])
    begun = one(session_id="s").json()
    latest()
    assert told(other(session_id="s")) == (HTTPStatus.CONFLICT, OTHER)
    secret = AuthToken.objects.get(grant__assistant=two[1])
    assert bound_to(secret) == Bounds("bank")
    assert Envelope.objects.filter(pk=begun["turn_id"]).exists()


def test_a_repeated_message_is_not_answered_with_what_another_one_said(
    two: Any, client: Client
) -> None:
    user = User.objects.create(username="shop")
    answers = []
    for assistant in two:
        headers = factories.key(user, assistant=assistant) | {"Idempotency-Key": "k1"}
        body = {"message": "Do unused days end?", "wait": False}
        answers.append(
            client.post("/api/chat/", body, content_type="application/json", headers=headers)
        )
        latest()
    assert answers[0].status_code == HTTPStatus.ACCEPTED
    assert told(answers[1]) == (HTTPStatus.CONFLICT, OTHER)


def test_a_conversation_with_another_assistant_is_not_found(two: Any, client: Client) -> None:
    user = User.objects.create(username="shop")
    headers = factories.key(user, assistant=two[1])
    ask("Hello?", Asker(user), session="foreign", assistant="telecom")
    ask("Hello?", Asker(user), session="own", assistant="bank")
    foreign, own = (Conversation.objects.get(session=name) for name in ("foreign", "own"))
    for name in ("foreign", str(foreign.pk)):
        for what in ("messages", "events"):
            found = client.get(f"/api/conversations/{name}/{what}/", headers=headers)
            assert found.status_code == HTTPStatus.NOT_FOUND
    for name in ("own", str(own.pk)):
        found = client.get(f"/api/conversations/{name}/messages/", headers=headers)
        assert found.status_code == HTTPStatus.OK


def test_a_turn_of_another_assistant_is_not_found(two: Any, client: Client) -> None:
    user = User.objects.create(username="shop", is_staff=True)
    headers = factories.key(user, assistant=two[1], scopes=["chat", "documents"])
    foreign = ask("Hello?", Asker(user), assistant="telecom")
    own = ask("Hello?", Asker(user), assistant="bank")
    for path in ("", "trace/", "events/"):
        found = client.get(f"/api/turns/{foreign.pk}/{path}", headers=headers)
        assert found.status_code == HTTPStatus.NOT_FOUND
    assert client.post(f"/api/turns/{foreign.pk}/cancel/", headers=headers).status_code == 404
    foreign.refresh_from_db()
    assert foreign.status == Status.RUNNING
    assert client.get(f"/api/turns/{own.pk}/", headers=headers).status_code == HTTPStatus.OK


def test_when_its_collections_are_gone_nothing_else_is_searched(
    two: Any, key: Callable[..., Post]
) -> None:
    post = key("shop", two[1])
    assert post(session_id="s", collections=["loans"]).status_code == HTTPStatus.ACCEPTED
    latest()
    Collection.objects.get(name="loans").delete()
    gone = (HTTPStatus.SERVICE_UNAVAILABLE, "The documents of this assistant are not there yet.")
    assert told(post(session_id="s")) == told(post()) == gone


def test_who_talks_with_staff_goes_on_when_the_collections_are_gone(
    two: Any, key: Callable[..., Post]
) -> None:
    post = key("shop", two[1])
    post(session_id="s")
    latest()
    Conversation.objects.update(status=Conversation.Status.WITH_STAFF)
    Collection.objects.get(name="loans").delete()
    assert post(session_id="s").json()["status"] == Status.WITH_STAFF
    payload = Envelope.objects.latest("create_ts").payload
    assert payload["collections"] == ["loans"]


def test_when_the_assistant_is_gone_its_conversations_are_nobodys(
    two: Any, key: Callable[..., Post]
) -> None:
    post = key("ann")
    post(assistant="bank", session_id="s")
    latest()
    two[1].delete()
    assert post(session_id="s").json() == UNKNOWN


def test_an_assistant_with_a_key_is_not_deleted(two: Any, key: Callable[..., Post]) -> None:
    key("shop", two[1])
    with pytest.raises(ProtectedError):
        two[1].delete()


def test_one_without_collections_does_not_reach_those_searched_by_name_only(
    two: Any, key: Callable[..., Post]
) -> None:
    Collection.objects.filter(name="secrets").update(only_by_name=True)
    post = key("shop", Assistant.objects.create(name="all"))
    assert post(collections=["loans"]).status_code == HTTPStatus.ACCEPTED
    assert post().status_code == HTTPStatus.ACCEPTED
    assert latest()["collections"] == []
    assert told(post(collections=["secrets"]))[0] == HTTPStatus.NOT_FOUND


def test_a_key_is_made_for_an_assistant_and_listed_with_it(two: Any) -> None:
    out = StringIO()
    call_command("apikey", "create", "shop", "--assistant", "bank", stdout=out)
    token = AuthToken.objects.get()
    assert bound_to(token) == Bounds("bank")
    assert [each.name for each in assistants_of(Bounds("bank"))] == ["bank"]
    with pytest.raises(CommandError, match=r"no assistant 'x'\. There are: bank, telecom"):
        call_command("apikey", "create", "other", "--assistant", "x")
    assert User.objects.count() == 1


def test_the_terminal_asks_an_assistant_by_its_name(two: Any) -> None:
    with pytest.raises(CommandError, match=r"no assistant 'x'\. There are: bank, telecom"):
        call_command("chat", "-q", "Hello?", "--assistant", "x")
    with pytest.raises(CommandError, match="There is no collection 'phones' here"):
        call_command("chat", "-q", "Hello?", "--assistant", "bank", "--collection", "phones")


def test_who_asks_by_code_gets_the_errors_of_the_api(two: Any) -> None:
    ask("Hello?", Asker(None), session="s", assistant="bank")
    with pytest.raises(OtherAssistant):
        ask("Hello?", Asker(None), session="s", assistant="telecom")
    with pytest.raises(UnknownAssistant):
        ask("Hello?", Asker(None, bound=Bounds("bank")), assistant="telecom")


@pytest.mark.parametrize("began", ["u123", ""])
def test_who_is_named_reads_no_conversation_that_began_for_another(two: Any, began: str) -> None:
    ask("Hello?", Asker(None, began), session="s", assistant="bank")
    Conversation.objects.update(status=Conversation.Status.OPEN)
    with pytest.raises(OtherUser):
        ask("Hello?", Asker(None, "u456"), session="s", assistant="bank")
    ask("Hello?", Asker(None), session="s", assistant="bank")
    assert Message.objects.filter(role=Message.Author.USER).count() == 2


def test_the_schema_tells_of_the_field_and_shows_it(client: Client) -> None:
    schema = client.get("/api/schema/", {"format": "json"}).json()
    body = schema["paths"]["/api/chat/"]["post"]["requestBody"]["content"]["application/json"]
    shown = [example["value"] for example in body["examples"].values()]
    assert {"message": "What does roaming cost in zone 2?", "assistant": "telecom"} in shown
    assert "assistant" in schema["components"]["schemas"]["ChatRequest"]["properties"]
