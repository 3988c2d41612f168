"""Who may what: the groups that come with a migration, in all of the admin and in the API."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, RequestFactory
from django.urls import reverse

from agents.names import Status
from conversations.models import Conversation, StaffGroup
from conversations.staff_groups import GROUPS, offer
from tests import factories

V, E, S, O = "Viewer", "Editor", "Support", "Operator"  # noqa: E741 as the columns of the table
ALL, NOBODY = {V, E, S, O}, set[str]()
HISTORY = {"list": ALL, "add": NOBODY, "change": NOBODY, "delete": NOBODY}
# By kind: whom the list, the form of a new row, changing one and deleting one are open to.
TABLE: dict[str, dict[str, set[str]]] = {
    "knowledge.document": {"list": ALL, "add": {E}, "change": NOBODY, "delete": {E}},
    "knowledge.collection": {"list": ALL, "add": {E}, "change": {E, O}, "delete": {E}},
    "knowledge.goldenquestion": {"list": ALL, "add": {E}, "change": {E}, "delete": {E}},
    "knowledge.ingest": HISTORY,
    "knowledge.entity": HISTORY,
    "knowledge.relation": HISTORY,
    "knowledge.receipt": HISTORY,
    "knowledge.source": {"list": ALL, "add": {E}, "change": {E}, "delete": {E}},
    "conversations.handover": HISTORY | {"list": {V, S, O}},
    "conversations.conversation": HISTORY,
    "conversations.feedback": HISTORY,
    "conversations.gap": HISTORY,
    "conversations.assistant": {"list": ALL, "add": {O}, "change": {E, O}, "delete": {O}},
    "conversations.key": {"list": {O}, "add": {O}, "change": NOBODY, "delete": {O}},
    "billing.refundcase": {"list": {V, S, O}, "add": NOBODY, "change": {S}, "delete": NOBODY},
    "billing.customer": HISTORY | {"list": {V, S, O}},
    "billing.plan": HISTORY | {"list": {V, S, O}},
    "billing.subscription": HISTORY | {"list": {V, S, O}},
    "billing.invoice": HISTORY | {"list": {V, S, O}},
    "agents.envelope": HISTORY,
    "agents.report": HISTORY | {"list": {V, O}},
    "agents.fault": HISTORY | {"list": {V, O}},
    "agents.modelcall": HISTORY | {"list": {V, O}},
    "agents.toolrun": HISTORY | {"list": {V, O}},
    "agents.price": {"list": {V, O}, "add": {O}, "change": {O}, "delete": {O}},
    "agents.budget": {"list": {V, O}, "add": {O}, "change": {O}, "delete": {O}},
    "auth.user": HISTORY | {"list": NOBODY},
    "auth.group": HISTORY | {"list": NOBODY},
}
# Pages of their own, by the name of their URL.
PAGES: dict[str, set[str]] = {
    "index": ALL,
    "admin-queues": ALL,
    "knowledge_document_search": ALL,
    "agents_modelcall_usage": {V, O},
    "admin-models": {O},
    "auth_group_rights": NOBODY,
}
# What is asked by POST, or about one row; tested where it is.
ELSEWHERE = {
    "knowledge_collection_archive",
    "knowledge_collection_upkeep",
    "knowledge_document_edit",
    "knowledge_document_move",
    "knowledge_document_reingest",
    "knowledge_goldenquestion_find",
    "conversations_conversation_try",
    "conversations_conversation_tried",
    "conversations_assistant_import",
    "auth_user_password_change",
}
OURS = {"index", "admin-queues", "admin-models"}  # of no kind
OF_DJANGO = {"changelist", "add", "history", "delete", "change"}
API: dict[str, dict[str, set[str]]] = {
    "/api/documents/": {"get": ALL, "post": {E}},
    "/api/documents/x/": {"get": ALL, "delete": {E}},
    "/api/documents/x/reingest/": {"post": {E}},
    "/api/collections/": {"get": ALL},
    "/api/ingests/": {"get": ALL},
    "/api/receipts/": {"get": ALL},
    "/api/sources/": {"get": ALL, "post": {E}},
    "/api/admin/queues/": {"get": ALL},
    "/api/admin/contracts/": {"get": ALL},
    "/api/admin/usage/": {"get": {V, O}},
    "/api/admin/feedback/": {"get": ALL},
    "/api/admin/handovers/": {"get": {V, S, O}},
    "/api/admin/handovers/1/": {"get": {V, S, O}, "post": {S}},
}


@pytest.fixture
def logins(db: None) -> dict[str, Client]:
    """A browser for somebody of each group."""
    offer()
    clients = {}
    for name in GROUPS:
        user = User.objects.create_user(name.lower(), is_staff=True)
        user.groups.add(Group.objects.get(name=name))
        clients[name] = Client()
        clients[name].force_login(user)
    return clients


def own_pages() -> Iterator[str]:
    """The names of the URLs that kinds add to those of Django."""
    for model, kind in admin.site._registry.items():
        prefix = f"{model._meta.app_label}_{model._meta.model_name}_"
        for pattern in kind.get_urls():
            name = str(pattern.name or "")
            if name and name.removeprefix(prefix) not in OF_DJANGO:
                yield name


def test_the_tables_name_every_kind_and_every_page_of_the_admin() -> None:
    kinds = {model._meta.label_lower for model in admin.site._registry}
    assert set(TABLE) == kinds
    assert set(own_pages()) - ELSEWHERE == set(PAGES) - OURS


def test_each_group_opens_what_the_table_says_and_nothing_else(logins: dict[str, Client]) -> None:
    found = {
        kind: {
            "list": allowed(logins, reverse(f"admin:{url}_changelist")),
            "add": allowed(logins, reverse(f"admin:{url}_add")),
            "change": permitted(logins, kind, "change"),
            "delete": permitted(logins, kind, "delete"),
        }
        for kind, url in ((kind, kind.replace(".", "_")) for kind in TABLE)
    }
    assert found == TABLE


def test_each_group_opens_the_pages_of_their_own(logins: dict[str, Client]) -> None:
    assert {name: allowed(logins, page(name)) for name in PAGES} == PAGES


def page(name: str) -> str:
    return reverse(name if name in OURS and name != "index" else f"admin:{name}")


def allowed(logins: dict[str, Client], where: str, method: str = "get") -> set[str]:
    """Who is not refused."""
    statuses = {name: getattr(client, method)(where).status_code for name, client in logins.items()}
    assert max(statuses.values()) < HTTPStatus.INTERNAL_SERVER_ERROR
    return {name for name, status in statuses.items() if status != HTTPStatus.FORBIDDEN}


def permitted(logins: dict[str, Client], kind: str, action: str) -> set[str]:
    """Whom the admin of a kind lets change or delete rows."""
    model = apps.get_model(kind)
    found = set()
    for name in logins:
        request: Any = RequestFactory().get("/admin/")
        request.user = User.objects.get(username=name.lower())
        if getattr(admin.site._registry[model], f"has_{action}_permission")(request):
            found.add(name)
    return found


def test_a_login_may_do_by_the_api_what_it_may_do_in_the_admin(logins: dict[str, Client]) -> None:
    found = {
        where: {method: allowed(logins, where, method) for method in methods}
        for where, methods in API.items()
    }
    assert found == API


def test_who_may_only_read_cannot_forget_what_others_said(logins: dict[str, Client]) -> None:
    talk = factories.conversation("desk-1")
    where = f"/api/conversations/{talk.pk}/"
    assert logins[V].get(where).status_code == HTTPStatus.OK
    assert logins[V].delete(where).status_code == HTTPStatus.NOT_FOUND
    assert Conversation.objects.exists()


def test_who_answers_for_staff_does_so_by_the_api_too(logins: dict[str, Client]) -> None:
    talk = factories.conversation("desk-1")
    factories.turn(talk, status=Status.WITH_STAFF)
    where = f"/api/admin/handovers/{talk.handovers.get().pk}/"
    answer = logins[S].post(where, {"action": "say", "text": "Hello!"}, "application/json")
    assert answer.status_code == HTTPStatus.OK
    refused = logins[V].post(where, {"action": "say", "text": "Hello!"}, "application/json")
    assert refused.status_code == HTTPStatus.FORBIDDEN


def test_what_an_operator_changed_by_hand_stays(db: None) -> None:
    offer()
    viewer = Group.objects.get(name=V)
    taken = viewer.permissions.get(codename="view_fault")
    given = Permission.objects.get(codename="add_price")
    viewer.permissions.remove(taken)
    viewer.permissions.add(given)
    Group.objects.get(name=S).delete()
    Group.objects.filter(name=E).update(name="Writers")
    offer()
    assert taken not in viewer.permissions.all()
    assert given in viewer.permissions.all()
    assert set(Group.objects.values_list("name", flat=True)) == {V, "Writers", O}


def test_a_kind_of_row_that_comes_later_is_offered_also_to_a_renamed_group(db: None) -> None:
    offer()
    Group.objects.filter(name=V).update(name="Readers")
    row = StaffGroup.objects.get(name=V)
    row.offered.remove("agents.view_fault")
    row.save()
    readers = Group.objects.get(name="Readers")
    readers.permissions.remove(Permission.objects.get(codename="view_fault"))
    offer()
    assert readers.permissions.filter(codename="view_fault").exists()


def test_a_group_that_was_made_by_hand_before_is_left_as_it_is(db: None) -> None:
    StaffGroup.objects.all().delete()
    Group.objects.all().delete()
    own = Group.objects.create(name=V)
    offer()
    assert not own.permissions.exists()
    assert Group.objects.count() == len(GROUPS)


def test_a_migration_makes_the_groups_and_going_back_before_them_breaks_nothing(db: None) -> None:
    StaffGroup.objects.all().delete()
    Group.objects.all().delete()

    class Before:
        """The models as they were before there were groups."""

        all_models: dict[str, dict[str, Any]] = {"conversations": {}}

    offer(Before())  # type: ignore[arg-type]
    assert not Group.objects.exists()
    offer()
    assert set(Group.objects.values_list("name", flat=True)) == set(GROUPS)


def test_the_page_says_what_each_group_may_do(client: Client, db: None) -> None:
    offer()
    client.force_login(User.objects.create_superuser("root"))
    shown = client.get("/admin/auth/group/rights/")
    rights = {
        place.title: dict(
            zip([group.name for group in shown.context["groups"]], cells, strict=True)
        )
        for _, rows in shown.context["sections"]
        for place, cells in rows
    }
    assert rights["Collections"][E] == "view, add, change, delete"
    assert rights["Collections"][O] == "view, change"
    assert rights["Usage and cost"] == {E: "", O: "open", S: "", V: "open"}
