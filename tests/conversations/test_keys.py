"""Keys: how they are made, what they are bound to, when they end, and what hears of it."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from knox.models import AuthToken
from pytest_django import DjangoAssertNumQueries

from agents.models import Envelope
from agents.names import Status
from agents.steps import events
from conversations import api, stream
from conversations.grants import SCOPES, USE_INTERVAL, Bounds, issue
from conversations.models import Assistant, Conversation, Grant
from conversations.services import Asker, ask
from conversations.staff_groups import offer
from knowledge.identifiers import Scope
from tests import factories
from tests.conversations.conftest import Followed

pytestmark = pytest.mark.django_db

WRONG_SCOPE = "Choose one or more of: chat, documents, admin."


def create(*words: str) -> tuple[str, Grant]:
    """Make a key by command and return it with its grant."""
    out = StringIO()
    call_command("apikey", "create", *words, stdout=out, stderr=StringIO())
    return out.getvalue().strip(), Grant.objects.latest("token__created")


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def post(client: Client, headers: dict[str, str], **body: Any) -> Any:
    said = {"message": "Do unused days end?", "wait": False} | body
    return client.post("/api/chat/", said, "application/json", headers=headers)


def test_a_key_may_chat_and_nothing_else_unless_told() -> None:
    _, grant = create("website")
    assert (grant.scopes, grant.bounds, grant.token.expiry) == (["chat"], Bounds(), None)
    assert not grant.token.user.has_usable_password()
    assert not grant.token.user.is_staff


def test_a_key_is_made_with_scopes_bounds_and_an_end() -> None:
    factories.collection("shop")
    shop = Assistant.objects.create(name="shop")
    words = "--scope chat --scope documents --collection shop --assistant shop --expires 30"
    _, grant = create("website", *words.split())
    assert grant.scopes == ["chat", "documents"]
    assert grant.bounds == Bounds("shop", ("shop",))
    assert grant.assistant == shop
    assert grant.token.expiry
    assert timedelta(days=29) < grant.token.expiry - now() < timedelta(days=31)
    assert create("root", "--staff")[1].scopes == list(SCOPES)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"scopes": []}, WRONG_SCOPE),
        ({"scopes": ["chat", "root"]}, WRONG_SCOPE),
        ({"collections": ["nowhere"]}, "There is no collection 'nowhere'. There are: handbook."),
        ({"collections": ["A b"], "scopes": ["documents"]}, "'A b' cannot name a collection."),
        ({"scopes": ["admin"], "collections": ["handbook"]}, "with the scope admin cannot be"),
        ({"days": 0}, "A key holds for 1 to 36,500 days."),
        ({"name": "bad name!"}, "'bad name!' cannot name a key"),
        ({"name": "anna"}, "'anna' is somebody who logs in: choose another name."),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_the_reason_and_leaves_nothing(
    wish: dict[str, Any], said: str
) -> None:
    factories.collection("handbook")
    User.objects.create_user("anna", password="secret words")
    with pytest.raises(ValidationError) as refused:
        issue(**{"name": "website"} | wish)
    assert said in " ".join(refused.value.messages)
    assert not AuthToken.objects.exists()
    assert not User.objects.filter(username="website").exists()


def test_the_list_shows_what_each_key_may_and_one_of_two_is_revoked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    factories.collection("shop")
    first, _ = create("website", "--collection", "shop")
    create("website", "--scope", "documents")
    AuthToken.objects.filter(token_key=first[:15]).update(expiry=now() - timedelta(days=1))
    call_command("apikey", "list")
    listed = capsys.readouterr().out
    assert all(word in listed for word in ("chat", "shop", "documents", "everything", "never"))
    with pytest.raises(CommandError, match="no key that begins with 'zzz'"):
        call_command("apikey", "revoke", "website", "--key", "zzz")
    call_command("apikey", "revoke", "website", "--key", first[:8], stdout=StringIO())
    assert Grant.objects.get().scopes == ["documents"]


def test_the_admin_makes_a_key_and_shows_it_once(client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    factories.collection("shop")
    where = reverse("admin:conversations_key_add")
    assert "Make the key" in client.get(where).content.decode()
    wish = {"name": "website", "scopes": ["chat"], "collections": ["shop"], "days": "7"}
    page = client.post(where, wish)
    token = AuthToken.objects.get()
    shown = page.content.decode().split('<code id="key">')[1].split("</code>")[0]
    assert shown.startswith(token.token_key)
    assert "no-store" in page["Cache-Control"]
    assert client.get("/api/documents/", headers=bearer(shown)).status_code == 403
    listed = client.get(reverse("admin:conversations_key_changelist")).content.decode()
    assert "shop" in listed
    assert shown not in listed
    refused = client.post(where, wish | {"scopes": ["admin"]}).content.decode()
    assert "with the scope admin cannot be bound" in refused
    assert AuthToken.objects.count() == 1


def test_who_may_not_add_keys_makes_none(client: Client) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    answer = client.post(reverse("admin:conversations_key_add"), {"name": "x", "scopes": ["chat"]})
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert not AuthToken.objects.exists()


def test_nobody_gives_a_key_what_they_may_not_do_themselves(client: Client) -> None:
    offer()
    operator = User.objects.create_user("op", is_staff=True)
    operator.groups.add(Group.objects.get(name="Operator"))
    client.force_login(operator)
    where = reverse("admin:conversations_key_add")
    assert 'value="documents"' not in client.get(where).content.decode()
    for scope in (Scope.DOCUMENTS, Scope.ADMIN):
        refused = client.post(where, {"name": "x", "scopes": ["chat", scope]}).content.decode()
        assert "Select a valid choice" in refused
    assert not AuthToken.objects.exists()
    for right in ("add_document", "delete_document"):
        operator.user_permissions.add(Permission.objects.get(codename=right))
    client.post(where, {"name": "x", "scopes": ["documents"]})
    assert AuthToken.objects.get().grant.scopes == [Scope.DOCUMENTS]


@pytest.mark.usefixtures("listening")
def test_a_bound_key_searches_its_collections_only_whatever_the_conversation_had(
    client: Client,
) -> None:
    for name in ("shop", "secrets"):
        factories.collection(name)
    ann = User.objects.create_user("ann")
    free, bound = factories.key(ann), factories.key(ann, collections=["shop"])
    assert post(client, bound, session_id="mine").status_code == HTTPStatus.ACCEPTED
    assert Envelope.objects.get().memory["collections"] == ["shop"]
    foreign = post(client, bound, collections=["secrets"])
    assert foreign.json()["detail"] == "There is no collection 'secrets' here."

    asked = post(client, free, session_id="theirs", collections=["secrets"]).json()
    Conversation.objects.update(status=Conversation.Status.OPEN)
    refused = post(client, bound, session_id="theirs")
    assert (refused.status_code, refused.json()["code"]) == (409, "other_documents")
    for where in (f"/api/turns/{asked['turn_id']}/", "/api/conversations/theirs/messages/"):
        assert client.get(where, headers=free).status_code == HTTPStatus.OK
        assert client.get(where, headers=bound).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.usefixtures("listening")
def test_a_key_whose_collection_is_gone_reaches_nothing_else(client: Client) -> None:
    for name in ("shop", "secrets"):
        factories.collection(name)
    bound = factories.key(User.objects.create_user("ann"), collections=["gone"])
    assert post(client, bound).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    found = client.get("/api/search/", {"q": "days"}, headers=bound)
    assert found.status_code == HTTPStatus.NOT_FOUND


@pytest.mark.usefixtures("listening")
def test_a_search_keeps_to_the_assistant_of_a_key(client: Client) -> None:
    for name in ("shop", "secrets"):
        factories.collection(name)
    shop = Assistant.objects.create(name="shop", collections=["shop"], audience="customers")
    bound = factories.key(User.objects.create_user("ann"), assistant=shop)

    def status(**query: str) -> int:
        return client.get("/api/search/", {"q": "days"} | query, headers=bound).status_code

    assert status() == status(collection="shop") == status(audience="customers") == HTTPStatus.OK
    assert status(collection="secrets") == HTTPStatus.NOT_FOUND
    assert status(audience="staff") == HTTPStatus.BAD_REQUEST


def test_last_use_is_written_once_a_minute(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    headers = factories.key(User.objects.create_user("ann"), scopes=["documents"])
    client.get("/api/receipts/", headers=headers)
    first = Grant.objects.get().last_used
    assert first
    with django_assert_num_queries(2) as queries:
        client.get("/api/receipts/", headers=headers)
    assert not any("UPDATE" in query["sql"] for query in queries.captured_queries)
    Grant.objects.update(last_used=now() - USE_INTERVAL)
    client.get("/api/receipts/", headers=headers)
    assert Grant.objects.filter(last_used__gt=first).exists()


@pytest.mark.parametrize(
    ("is_staff", "is_bound", "scopes"),
    [
        (False, False, ["chat"]),
        (True, False, ["chat", "documents", "admin"]),
        (False, True, ["chat"]),
        (True, True, ["chat", "documents"]),
    ],
)
def test_a_key_from_before_may_go_on_doing_what_it_might(
    is_staff: bool, is_bound: bool, scopes: list[str]
) -> None:
    user = User.objects.create_user("old", is_staff=is_staff)
    token, _ = AuthToken.objects.create(user)  # type: ignore[no-untyped-call]
    if is_bound:
        Grant.objects.create(token=token, assistant=Assistant.objects.create(name="shop"))
    import_module("conversations.migrations.0005_keys").grant_all(apps, None)
    assert Grant.objects.get(token=token).scopes == scopes


Open = Callable[[], tuple[Followed, AuthToken]]


@pytest.fixture(params=["turn", "conversation"])
def follow(port: int, request: pytest.FixtureRequest, transactional_db: None) -> Iterator[Open]:
    """Follow a turn that runs, or a conversation, with a key of its owner."""
    opened: list[Followed] = []

    def begin() -> tuple[Followed, AuthToken]:
        ann = User.objects.create_user("ann")
        turn = factories.turn(factories.conversation(owner=ann), status=Status.RUNNING)
        where = {
            "turn": reverse("turn-events", args=[turn.pk]),
            "conversation": reverse("conversation-events", args=[turn.conversation_id]),
        }[request.param]
        opened.append(Followed(port, factories.key(ann), where))
        assert opened[-1].response.status == HTTPStatus.OK
        assert opened[-1].next()
        return opened[-1], AuthToken.objects.get()

    yield begin
    for each in opened:
        each.close()


@pytest.mark.django_db(transaction=True)
def test_a_revoked_key_ends_its_open_streams_at_once(
    follow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def holds(_: AuthToken) -> bool:
        return True

    # By the ring alone: who looks at the row finds nothing wrong.
    monkeypatch.setattr(stream, "is_usable", holds)
    monkeypatch.setattr(stream, "KEY_SECONDS", 600)
    followed, token = follow()
    token.delete()
    followed.rest()
    assert followed.response.isclosed()


def truncate() -> None:
    """Delete all keys where nobody hears of it."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE knox_authtoken CASCADE")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "end",
    [
        lambda token: AuthToken.objects.filter(pk=token.pk).update(expiry=now()),
        lambda token: User.objects.filter(pk=token.user_id).update(is_active=False),
        lambda _: truncate(),
    ],
    ids=["expired", "user switched off", "ring lost"],
)
def test_a_key_that_ends_without_a_ring_ends_its_streams_soon(
    follow: Open, monkeypatch: pytest.MonkeyPatch, end: Callable[[AuthToken], Any]
) -> None:
    monkeypatch.setattr(stream, "KEY_SECONDS", 0.2)
    followed, token = follow()
    end(token)
    followed.rest()
    assert followed.response.isclosed()


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_never_falls_silent_notices_too(
    follow: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEY_SECONDS", 0.2)
    followed, token = follow()
    turn = Envelope.objects.get()
    AuthToken.objects.filter(pk=token.pk).update(expiry=now())
    until = time.monotonic() + 20
    while not followed.response.isclosed() and time.monotonic() < until:
        events.publish(turn.target_list, "token", text="x")
        followed.next()
    assert followed.response.isclosed()


@pytest.mark.usefixtures("listening")
def test_who_asks_by_code_keeps_to_the_bounds() -> None:
    for name in ("shop", "secrets"):
        factories.collection(name)
    ask("Days?", Asker(None, bound=Bounds(collections=("shop",))))
    assert Envelope.objects.get().memory["collections"] == ["shop"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("/api/chat/", {"message": "Days?"}),
        (
            "/v1/chat/completions",
            {"model": "handbook", "messages": [{"role": "user", "content": "Days?"}]},
        ),
    ],
)
def test_who_waits_with_a_key_that_is_revoked_gets_no_answer(
    where: str, body: Any, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.collection()

    def revoke(envelope: Envelope) -> Envelope:
        AuthToken.objects.all().delete()
        return envelope

    monkeypatch.setattr(api, "wait", revoke)
    headers = factories.key(User.objects.create_user("ann"))
    answer = client.post(where, body, content_type="application/json", headers=headers)
    assert answer.status_code == HTTPStatus.UNAUTHORIZED
