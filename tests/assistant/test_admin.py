"""Admin shows every kind of row, and changes none that is history."""

from decimal import Decimal
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.checks import run_checks
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from knox.models import AuthToken

from agents.billing.models import Customer, Invoice, Plan, RefundCase, Subscription
from agents.billing.refunds import open_case
from agents.models import Budget, Envelope, Fault, ModelCall, Price, Report, ToolRun
from agents.names import Status
from conversations import handover
from conversations.endings import Ending
from conversations.models import Assistant, Conversation, Feedback, Gap, Grant, Handover, Key
from knowledge.models import (
    Chunk,
    Collection,
    Document,
    Entity,
    GoldenQuestion,
    Ingest,
    Receipt,
    Relation,
    Source,
)
from tests import factories
from tests.agents.billing.accounts import account
from tests.conftest import Make

KINDS: list[type[Model]] = [
    Assistant, Budget, Collection, Conversation, Customer, Document, Entity, Envelope,
    Fault,
    Feedback, Gap, GoldenQuestion, Group, Handover, Ingest, Invoice, Key, ModelCall, Plan, Price,
    Receipt, RefundCase, Relation, Report, Source, Subscription, ToolRun, User,
]  # fmt: skip
KEPT: list[type[Model]] = [
    Entity, Envelope, Fault, Feedback, Gap, Handover, Ingest, ModelCall, Receipt, Relation, ToolRun,
]  # fmt: skip
RECORDS: list[type[Model]] = [Conversation, Document, Report, *KEPT]
SCRIPT = "<script>alert(1)</script>"
ATTRIBUTE = '" onmouseover="alert(1)'


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture(scope="module")
def made(for_all: Make) -> None:
    """The rows, before any test."""
    for_all(make_rows)


@pytest.fixture
def rows(made: None, db: None) -> None:
    """One row at least of each kind, with a script wherever somebody else wrote the text."""


def make_rows() -> None:
    body = factories.collection("handbook", content=f"# Holidays\n\n{SCRIPT}")
    Ingest.objects.create(collection=body, name=SCRIPT, report={"new": [SCRIPT]})
    GoldenQuestion.objects.create(collection=body, question=SCRIPT, sources=[SCRIPT])
    followed = Source.objects.create(collection=body, kind="git", address=SCRIPT, folder=ATTRIBUTE)
    Ingest.objects.create(collection=body, source=followed, name=SCRIPT, error=ATTRIBUTE)
    gone = {"id": "d" * 32, "source": SCRIPT, "title": SCRIPT, "version": 1}
    Receipt.objects.create(collection="handbook", by=SCRIPT, documents=[gone])
    state(Document.objects.get(), SCRIPT)
    widget = User.objects.create_user("widget")
    token, _ = AuthToken.objects.create(widget)  # type: ignore[no-untyped-call]
    shop = Assistant.objects.create(name="shop", title=SCRIPT, greeting=ATTRIBUTE, tone=SCRIPT)
    Grant.objects.create(token=token, assistant=shop, scopes=["chat"])
    Group.objects.create(name="readers")
    talk = factories.conversation("shop-1", owner=widget)
    Price.objects.create(model=SCRIPT, input_per_million=1, output_per_million=2)
    Budget.objects.create(owner=widget, usd_per_day=5)
    answered = factories.turn(
        talk,
        SCRIPT,
        response=f"{SCRIPT} [C1]",
        route="documentation",
        citations_used=[factories.CITATION | {"title": SCRIPT, "quote": ATTRIBUTE}],
    )
    factories.model_call(answered, reply=SCRIPT, error=ATTRIBUTE, outcome="malformed")
    Feedback.objects.create(turn=answered, rating="down", comment=f"{SCRIPT} {ATTRIBUTE}")
    ToolRun.objects.create(
        envelope=answered,
        step_number=1,
        number=1,
        role="response",
        tool=SCRIPT,
        arguments={"reason": SCRIPT},
        outcome="execution",
        result={"said": ATTRIBUTE},
        error=ATTRIBUTE,
        key="one",
    )
    missed(answered)
    Report.objects.create(title=SCRIPT, collection="handbook", text=SCRIPT, counts={SCRIPT: 1})
    factories.failed_turn(talk, ValueError(SCRIPT))
    factories.turn(talk, status=Status.RUNNING)
    desk = factories.conversation("desk-1", owner=widget)
    factories.turn(desk, SCRIPT, status=Status.WITH_STAFF, response=SCRIPT)
    handover.say(Handover.objects.get().pk, widget, f"{SCRIPT} {ATTRIBUTE}")
    number = account(SCRIPT).number
    wish = {"invoice_number": number, "reason": "other", "description": ATTRIBUTE}
    open_case(SCRIPT, amount=Decimal(1), **wish)


def missed(turn: Envelope) -> None:
    """Let a turn have asked what others ask, and nobody answers."""
    ending = Ending.objects.get(turn=turn)
    Ending.objects.filter(pk=ending.pk).update(
        is_missed=True, gap=Gap.objects.create(leader=ending)
    )


def state(document: Document, said: str) -> None:
    """Let the document state that something is related to itself."""
    named = Entity.objects.create(
        collection=document.collection, name=said, key=document.pk, kind=said
    )
    named.names.create(document=document, name=said, key=document.pk)
    chunk = document.chunks.all()[0]
    Relation.objects.create(
        document=document, chunk=chunk, subject=named, predicate=said, object=named
    )


def address(kind: type[Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{kind._meta.app_label}_{kind._meta.model_name}_{page}", args=args)


def some(kind: type[Model]) -> Model:
    row = kind._default_manager.order_by("pk").first()
    assert row is not None
    return row


def test_the_checks_of_django_find_nothing() -> None:
    assert run_checks() == []


def test_every_kind_that_is_registered_is_looked_at_here() -> None:
    assert set(admin.site._registry) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_shows_its_rows(kind: type[Model], staff: Client, rows: None) -> None:
    page = staff.get(address(kind, "changelist")).content.decode()

    assert address(kind, "change", some(kind).pk) in page
    assert SCRIPT not in page


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_has_a_page_without_scripts_of_others(
    kind: type[Model], staff: Client, rows: None
) -> None:
    for row in kind._default_manager.all():
        response = staff.get(address(kind, "change", row.pk))

        assert response.status_code == HTTPStatus.OK
        page = response.content.decode()
        assert SCRIPT not in page
        assert ATTRIBUTE not in page


@pytest.mark.parametrize("kind", KINDS)
def test_searching_a_list_finds_nothing_without_breaking(
    kind: type[Model], staff: Client, rows: None
) -> None:
    response = staff.get(address(kind, "changelist"), {"q": "no such words"})

    assert response.status_code == HTTPStatus.OK


@pytest.mark.parametrize("kind", RECORDS)
def test_records_can_be_neither_added_nor_changed(
    kind: type[Model], staff: Client, rows: None
) -> None:
    row = some(kind)
    before = kind._default_manager.filter(pk=row.pk).values().get()

    added = staff.post(address(kind, "add"), {})
    changed = staff.post(address(kind, "change", row.pk), {"status": "completed", "title": "x"})

    assert added.status_code == changed.status_code == HTTPStatus.FORBIDDEN
    assert kind._default_manager.filter(pk=row.pk).values().get() == before


@pytest.mark.parametrize("kind", KEPT)
def test_history_cannot_be_deleted(kind: type[Model], staff: Client, rows: None) -> None:
    row = some(kind)

    page = staff.post(address(kind, "delete", row.pk), {"post": "yes"})
    action = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
    staff.post(address(kind, "changelist"), action)

    assert page.status_code == HTTPStatus.FORBIDDEN
    assert kind._default_manager.filter(pk=row.pk).exists()


def test_a_list_of_many_costs_no_more_queries_than_one_of_few(staff: Client, rows: None) -> None:
    def queries() -> dict[str, int]:
        counts = {}
        for kind in RECORDS:
            with CaptureQueriesContext(connection) as captured:
                staff.get(address(kind, "changelist"))
            counts[kind.__name__] = len(captured)
        return counts

    few = queries()
    for number in range(5):
        owner = User.objects.create_user(f"owner-{number}")
        talk = factories.conversation(f"many-{number}", owner=owner)
        factories.failed_turn(talk, ValueError("broken"))
        body = factories.collection(f"many-{number}", documents=2)
        Ingest.objects.create(collection=body, name="x.md")
        for document in body.documents.all():
            state(document, f"thing {number}")
        missed(factories.turn(talk))

    assert queries() == few


def test_a_turn_is_shown_with_its_steps_payload_and_faults(staff: Client, rows: None) -> None:
    envelope = Envelope.objects.exclude(error_id="").get()

    page = staff.get(address(Envelope, "change", envelope.pk)).content.decode()

    assert envelope.error_id in page
    assert page.index('id="reply"') < page.index('id="decisions"')
    assert "Something went wrong" in page
    assert '<th scope="row">manager</th>' in page
    assert '<svg class="bar"' in page


def test_a_turn_is_found_by_its_error_number_and_its_words(staff: Client, rows: None) -> None:
    envelope = Envelope.objects.exclude(error_id="").get()
    link = address(Envelope, "change", envelope.pk)

    for words in (envelope.error_id, str(envelope.pk), str(envelope.conversation_id), "unused"):
        page = staff.get(address(Envelope, "changelist"), {"q": words}).content.decode()
        assert link in page


def test_a_conversation_reads_as_a_chat_with_links_to_its_turns(staff: Client, rows: None) -> None:
    talk = Conversation.objects.get(session="shop-1")

    page = staff.get(address(Conversation, "change", talk.pk)).content.decode()

    assert page.count('class="said user"') == 3
    assert page.count('class="said assistant"') == 2
    for message in talk.messages.filter(role="assistant"):
        assert address(Envelope, "change", message.turn_id) in page
    assert "verified" in page


def test_deleting_a_conversation_forgets_its_turns(staff: Client, rows: None) -> None:
    talk = Conversation.objects.get(session="shop-1")
    kept = set(Envelope.objects.exclude(conversation_id=talk.pk))

    asked = staff.get(address(Conversation, "delete", talk.pk)).content.decode()
    staff.post(address(Conversation, "delete", talk.pk), {"post": "yes"})

    assert "3 turns with their traces" in asked
    assert Conversation.objects.get().session == "desk-1"
    assert set(Envelope.objects.all()) == kept
    assert len(kept) == 1


def test_deleting_chosen_conversations_forgets_their_turns(staff: Client, rows: None) -> None:
    chosen = [str(talk.pk) for talk in Conversation.objects.all()]

    staff.post(
        address(Conversation, "changelist"),
        {"action": "delete_selected", "_selected_action": chosen, "post": "yes"},
    )

    assert not Conversation.objects.exists()
    assert not Envelope.objects.exists()


def test_deleting_a_user_forgets_what_was_said_to_them(staff: Client, rows: None) -> None:
    user = User.objects.get(username="widget")

    staff.post(address(User, "delete", user.pk), {"post": "yes"})

    assert not User.objects.filter(username="widget").exists()
    assert not Envelope.objects.exists()


def test_a_document_shows_its_chunks_and_can_be_deleted(staff: Client, rows: None) -> None:
    document = Document.objects.get()

    page = staff.get(address(Document, "change", document.pk)).content.decode()
    asked = staff.get(address(Document, "delete", document.pk)).content.decode()
    staff.post(address(Document, "delete", document.pk), {"post": "yes"})

    assert "Leave > Carry over" in page
    assert "Unused days of part 2 end in March." in page
    assert "1 document with 2 chunks" in asked
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_a_collection_can_be_retitled_and_keeps_its_name(staff: Client, rows: None) -> None:
    row = Collection.objects.get()

    staff.post(address(Collection, "change", row.pk), {"name": "other", "title": "The handbook"})

    row.refresh_from_db()
    assert (row.name, row.title) == ("handbook", "The handbook")


def test_a_collection_goes_with_its_documents_and_uploads(staff: Client, rows: None) -> None:
    row = Collection.objects.get()

    staff.post(address(Collection, "delete", row.pk), {"post": "yes"})

    for kind in (Collection, Document, Chunk, Ingest):
        assert not kind._default_manager.exists()


def test_a_key_can_be_revoked_and_not_changed(staff: Client, rows: None) -> None:
    token = AuthToken.objects.get()

    changed = staff.post(address(Key, "change", token.pk), {"scopes": "admin"})
    staff.post(address(Key, "delete", token.pk), {"post": "yes"})

    assert changed.status_code == HTTPStatus.FORBIDDEN
    assert not AuthToken.objects.exists()


def test_staff_without_rights_see_nothing(client: Client, rows: None) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))

    for kind in KINDS:
        response = client.get(address(kind, "change", some(kind).pk))
        assert response.status_code == HTTPStatus.FORBIDDEN
