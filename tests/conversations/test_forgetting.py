"""A conversation that is forgotten leaves nothing behind, and the receipt says what there was."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import CASCADE, Model

from agents.models import Envelope, ModelCall, ToolRun
from agents.names import Status
from agents.steps import events
from conversations.erasure import KINDS, RELIANCES, forget
from conversations.models import Conversation, Feedback, Notification
from knowledge.models import Reliance
from tests import factories


def full(session: str) -> Conversation:
    """A conversation with a row at least of each kind; staff were handed it."""
    talk = factories.conversation(session)
    turn = factories.turn(talk, citations_used=[factories.CITATION])
    factories.model_call(turn)
    ToolRun.objects.create(envelope=turn, step_number=1, number=1, outcome="ok", key=session)
    Feedback.objects.create(turn=turn, rating="down")
    factories.failed_turn(talk, ValueError("broken"))
    factories.turn(talk, status=Status.WITH_STAFF)
    Notification.objects.create(handover=talk.handovers.get(), channel="email")
    return talk


def counts() -> dict[str, int]:
    """How many rows there are, as a receipt calls them."""
    rows = {name: kind._default_manager.count() for kind, name in KINDS.items()}
    # Of others nothing stands but what they cost.
    own_calls = ModelCall.objects.exclude(envelope=None).count()
    return rows | {RELIANCES: Reliance.objects.count(), KINDS[ModelCall]: own_calls}


def cascading(kind: type[Model]) -> Iterator[type[Model]]:
    """The kinds of rows that go with one of this kind, and those that go with them."""
    for relation in kind._meta.related_objects:
        if relation.on_delete is CASCADE and isinstance(relation.related_model, type):
            yield relation.related_model
            yield from cascading(relation.related_model)


def test_a_receipt_has_every_kind_that_goes_with_a_conversation_or_a_turn() -> None:
    gone = {kind for root in (Conversation, Envelope) for kind in (root, *cascading(root))}
    assert gone == set(KINDS)


def test_forgetting_one_conversation_takes_all_of_it_along_and_nothing_of_others(db: None) -> None:
    kept = full("kept")
    alone = counts()
    assert min(alone.values()) > 0

    assert forget(full("gone")) == alone

    assert counts() == alone
    assert Conversation.objects.get() == kept


def test_a_conversation_that_is_gone_is_forgotten_with_an_empty_receipt(db: None) -> None:
    talk = full("gone")
    forget(Conversation.objects.get())
    receipt = forget(talk)
    assert dict(receipt) == dict.fromkeys([*KINDS.values(), RELIANCES], 0)


@pytest.mark.django_db(transaction=True)
def test_who_follows_a_turn_hears_of_its_end_and_nothing_else_is_left_of_it() -> None:
    talk = factories.conversation()
    ended, running = factories.turn(talk), factories.turn(talk, status=Status.RUNNING)
    events.publish(running.target_list, "token", text="secret")

    forget(talk)

    def read(turn: Envelope) -> Any:
        return events.connection().xrange(turn.target_list)

    assert read(ended) == []
    assert [entry["event"] for _, entry in read(running)] == ["workflow_complete"]
