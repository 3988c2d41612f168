"""Conversations in which nothing happened for long are forgotten, unless somebody is waited for."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.db import Error
from django.utils.timezone import now

from agents.models import Fault
from agents.names import Status
from agents.steps import faults
from conversations import expiry
from conversations.erasure import forget
from conversations.models import Conversation
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

DAYS = 30


@pytest.fixture(autouse=True)
def thirty_days(settings: LazySettings) -> None:
    """Conversations are kept for thirty days."""
    settings.CONVERSATION_TTL_DAYS = DAYS


def aged(days: float = DAYS + 1, **values: Any) -> Conversation:
    """A conversation with a turn, in which nothing happened for some days."""
    talk = factories.conversation(str(uuid4()))
    factories.turn(talk)
    return grown_old(talk, days, **values)


def grown_old(talk: Conversation, days: float = DAYS + 1, **values: Any) -> Conversation:
    values |= {"updated": now() - timedelta(days=days)}
    Conversation.objects.filter(pk=talk.pk).update(**values)
    return talk


def left() -> set[Conversation]:
    """What is still there after a round."""
    expiry.forget_expired()
    return set(Conversation.objects.all())


def test_what_is_older_goes_with_its_turns_and_nothing_else_does() -> None:
    kept = {aged(0), aged(DAYS - 0.1)}
    aged()
    aged(status=Conversation.Status.AWAITING_USER)
    removed = expiry.forget_expired()
    assert set(Conversation.objects.all()) == kept
    assert (removed["conversations"], removed["turns"], removed["messages"]) == (2, 2, 4)
    assert not any(expiry.forget_expired().values())


def test_a_conversation_in_which_somebody_is_waited_for_stays() -> None:
    busy = {aged(status=status) for status in expiry.BUSY}
    late = aged()
    factories.turn(late, status=Status.RUNNING)
    assert left() == busy | {grown_old(late)}


def test_one_that_was_gone_on_with_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = aged()

    def slow(conversation: Conversation, **more: Any) -> Any:
        conversation.message("user", "Are you there?").save()
        conversation.save()
        return forget(conversation, **more)

    monkeypatch.setattr(expiry, "forget", slow)
    assert left() == {talk}
    assert talk.messages.count() == 3


def test_one_that_cannot_be_forgotten_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = aged(DAYS + 2)
    aged()

    def failing(conversation: Conversation, **more: Any) -> Any:
        if conversation == stuck:
            raise Error("deadlock detected")
        return forget(conversation, **more)

    monkeypatch.setattr(expiry, "forget", failing)
    assert left() == {stuck}


def test_a_round_takes_no_more_than_a_batch_and_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expiry, "BATCH", 2)
    aged(DAYS + 3)
    youngest = aged(DAYS + 1)
    aged(DAYS + 2)
    assert left() == {youngest}
    assert left() == set()


def test_errors_of_no_turn_go_after_the_same_time() -> None:
    old, new = (faults.record(ValueError(word), role="api") for word in ("old", "new"))
    Fault.objects.filter(code=old).update(created=now() - timedelta(days=DAYS + 1))
    assert expiry.forget_expired()["errors"] == 1
    assert Fault.objects.get().code == new


@pytest.mark.parametrize(("days", "starts"), [(0, False), (DAYS, True)])
def test_nothing_expires_unless_it_is_said_after_how_many_days(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings, days: int, starts: bool
) -> None:
    settings.CONVERSATION_TTL_DAYS = days
    started: list[str] = []
    monkeypatch.setattr("threading.Thread.start", lambda thread: started.append(thread.name))
    expiry.start()
    assert started == ["expiry"] * starts
