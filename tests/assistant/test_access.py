"""Access: every path of the API, as the URL configuration has it, asked by everyone who may not."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

import pytest
from celery import current_app
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.timezone import now
from knox.models import AuthToken

from agents.names import Status
from conversations.grants import SCOPES
from conversations.models import Handover
from conversations.openai_models import EVERYTHING
from knowledge.api import ingest_api
from knowledge.api.lists import ListView
from knowledge.identifiers import Scope
from knowledge.models import Document, Ingest, Receipt, Source
from tests import factories
from tests.conftest import Make

BELOW = ("api/", "v1/", "mcp")
# Whoever comes may read what the API is like.
PUBLIC = {"schema", "docs"}
METHODS = ("get", "post", "put", "patch", "delete")
OTHER = "other"


class Operation(NamedTuple):
    """One thing that can be asked for."""

    method: str
    name: str  # of the address
    route: str
    parameters: tuple[str, ...]
    scope: Scope | None  # None: the view forgot to say

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.route}"


def patterns(of: Any, before: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address below `before`, with its pattern."""
    for each in of:
        route = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each.url_patterns, route)
        elif route.startswith(BELOW):
            yield route, each


def operations() -> list[Operation]:
    return [
        Operation(
            method,
            pattern.name or "",
            route,
            tuple(pattern.pattern.converters),
            getattr(pattern.callback.view_class, "scope", None),  # type: ignore[attr-defined]
        )
        for route, pattern in patterns(get_resolver().url_patterns)
        for method in METHODS
        if pattern.name not in PUBLIC and hasattr(pattern.callback.view_class, method)  # type: ignore[attr-defined]
    ]


OPERATIONS = operations()
LISTS = {
    pattern.name
    for _, pattern in patterns(get_resolver().url_patterns)
    if issubclass(getattr(pattern.callback, "view_class", object), ListView)
}
# Whatever their names say, nothing of others is told: test_openai_api has which models a key knows,
# test_privacy whose conversations are forgotten with a user.
NAMES = {"openai-model", "user"}
every = pytest.mark.parametrize("operation", OPERATIONS, ids=str)
of_objects = pytest.mark.parametrize(
    "operation",
    [
        each
        for each in OPERATIONS
        if each.parameters and each.scope != Scope.ADMIN and each.name not in NAMES
    ],
    ids=str,
)


@pytest.fixture(scope="module")
def things(for_all: Make) -> None:
    """What there is, before any test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(current_app, "send_task", lambda *_, **__: None)
        for_all(make_things)


@pytest.fixture
def ann(things: None, nobody_works: None, db: None) -> User:
    """An owner with one thing of each kind, in one collection; there is another collection."""
    return User.objects.get(username="ann")


@pytest.fixture
def nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for is not done, and nobody waits for it."""
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: None)
    monkeypatch.setattr(ingest_api, "PATIENCE_SECONDS", 0)


def make_things() -> None:
    # Who may do everything after a login: their keys may do no more for it.
    user = User.objects.create_superuser("ann")
    handbook = factories.collection("handbook")
    factories.collection(OTHER)
    talk = factories.conversation("visitor-17", owner=user)
    talk.collections.set([handbook])
    factories.turn(talk, response="Unused days end.")
    desk = factories.conversation("desk", owner=user)
    factories.turn(desk, status=Status.WITH_STAFF)
    Ingest.objects.create(collection=handbook, name="0.md", status=Ingest.Status.FAILED)
    Receipt.objects.create(collection="handbook", by="ann", documents=[])
    Source.objects.create(collection=handbook, kind="git", address="https://docs.test/d.git")


def address(operation: Operation, user: User) -> str:
    """The address of what the owner has: a new kind of thing has to be added here."""
    talk = user.conversation_set.get(session="visitor-17")
    document = Document.objects.get(collection__name="handbook")
    things: dict[str, Callable[[], Any]] = {
        "turn_id": lambda: talk.messages.exclude(turn=None)[0].turn_id,
        "name": lambda: EVERYTHING if operation.name == "openai-model" else talk.pk,
        "source_id": lambda: Source.objects.get().pk,
        "ingest_id": lambda: Ingest.objects.get().pk,
        "number": lambda: 1,
        "user_id": lambda: "u123",
        "handover_id": lambda: Handover.objects.get().pk,
        "pk": lambda: Receipt.objects.get().pk if "receipt" in operation.name else document.pk,
    }
    given = {parameter: things[parameter]() for parameter in operation.parameters}
    return reverse(operation.name, kwargs=given)


def send(client: Client, operation: Operation, where: str, headers: Any, **body: Any) -> Any:
    """Ask, and leave what is told at length unread."""
    call = getattr(client, operation.method)
    if operation.method == "get":
        return call(where, body, headers=headers)
    return call(where, body, content_type="application/json", headers=headers)


def test_every_view_says_which_scope_it_needs() -> None:
    assert len(OPERATIONS) > 25
    assert [str(each) for each in OPERATIONS if each.scope not in {*Scope}] == []


@every
def test_nobody_comes_in_without_a_key_that_holds(
    operation: Operation, ann: User, client: Client
) -> None:
    where = address(operation, ann)
    expired, revoked, left = (factories.key(ann, scopes=SCOPES) for _ in range(3))
    tokens = AuthToken.objects.order_by("created")
    AuthToken.objects.filter(pk=tokens[0].pk).update(expiry=now() - timedelta(seconds=1))
    tokens[1].delete()
    AuthToken.objects.filter(pk=AuthToken.objects.latest("created").pk).update(
        user=User.objects.create_user("left", is_active=False)
    )
    unknown = ("f" * 64, "\xe9", "x y", "")
    headers = [{}, expired, revoked, left, *({"Authorization": f"Bearer {key}"} for key in unknown)]
    statuses = [send(client, operation, where, each).status_code for each in headers]
    assert statuses == [HTTPStatus.UNAUTHORIZED] * len(headers)


@every
def test_a_key_without_the_scope_is_told_which_it_lacks(
    operation: Operation, ann: User, client: Client
) -> None:
    where = address(operation, ann)
    others = [each for each in SCOPES if each != operation.scope]
    for scopes in (others, *([each] for each in others)):
        answer = send(client, operation, where, factories.key(ann, scopes=scopes))
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert f"the scope {operation.scope}" in answer.content.decode()


@of_objects
def test_what_belongs_to_another_or_lies_in_another_collection_is_not_found(
    operation: Operation, ann: User, client: Client
) -> None:
    where, scopes = address(operation, ann), ["chat", "documents"]
    bob = User.objects.create_user("bob")
    foreign = [factories.key(bob, scopes=scopes)] if operation.scope == Scope.CHAT else []
    foreign += [factories.key(user, scopes=scopes, collections=[OTHER]) for user in (ann, bob)]
    for headers in foreign:
        answer = send(client, operation, where, headers)
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "handbook" not in answer.content.decode()


def test_every_list_is_read_in_pages_of_one_shape(ann: User, client: Client) -> None:
    headers = factories.key(ann, scopes=SCOPES)
    lists = [each for each in OPERATIONS if each.method == "get" and each.name in LISTS]
    assert {each.name for each in lists} == LISTS
    wrong = [{"page": "0"}, {"page": "x"}, {"page": ""}, {"page_size": "null"}, {"nothing": "1"}]
    wrong += [{"page_size": "201"}, {"page_size": "1.0"}]
    for each in lists:
        where = address(each, ann)
        shown = client.get(where, {"page": "1", "page_size": "1"}, headers=headers).json()
        assert {*shown} == {"count", "next", "previous", "results"}, where
        assert len(shown["results"]) == min(1, shown["count"])
        for query in wrong:
            answer = client.get(where, query, headers=headers)
            assert (answer.status_code, {*answer.json()["fields"]}) == (400, {*query}), where


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize("name", ["handbook", "nowhere", "a\x00b"])
@pytest.mark.parametrize(
    ("method", "where", "body"),
    [
        ("post", "/api/chat/", {"message": "Days?", "wait": False, "collections": []}),
        ("post", "/api/conversations/", {"collections": []}),
        ("post", "/api/documents/", {"content": "Days.", "wait": False, "collection": ""}),
        ("get", "/api/documents/", {"collection": ""}),
        ("get", "/api/ingests/", {"collection": ""}),
        ("get", "/api/search/", {"q": "days", "collection": ""}),
    ],
)
def test_a_collection_out_of_reach_is_not_found_and_no_other_is_named(
    method: str, where: str, body: dict[str, Any], name: str, ann: User, client: Client
) -> None:
    headers = factories.key(ann, scopes=["chat", "documents"], collections=[OTHER])
    asked = body | ({"collections": [name]} if "collections" in body else {"collection": name})
    operation = Operation(method, "", where, (), None)
    answer = send(client, operation, where, headers, **asked)
    unusable = {HTTPStatus.BAD_REQUEST} if "\x00" in name else set()
    assert answer.status_code in {HTTPStatus.NOT_FOUND, *unusable}
    assert not {"handbook", OTHER} - {name} & {*answer.content.decode().replace("'", " ").split()}


@pytest.mark.parametrize("where", ["/api/documents/", "/api/ingests/", "/api/receipts/"])
def test_lists_hold_what_is_in_reach(where: str, ann: User, client: Client) -> None:
    def count(**grant: Any) -> int:
        headers = factories.key(ann, scopes=["documents"], **grant)
        return len(client.get(where, headers=headers).json()["results"])

    everything = 2 if where == "/api/documents/" else 1
    assert (count(), count(collections=["handbook"])) == (everything, 1)
    assert count(collections=[OTHER]) == everything - 1
    assert count(collections=["gone"]) == 0
