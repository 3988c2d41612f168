"""Handing over to a person: who answers when, and that the assistant is silent meanwhile."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from pytest_django import Settings

from agents import envelopes
from agents.attributes import RefundForm
from agents.models import Envelope
from agents.names import Role, Status
from agents.opening_hours import OpeningHours
from agents.steps import events, presence
from conversations import handover
from conversations.answers import reply
from conversations.erasure import forget
from conversations.errors import RefusedHandover
from conversations.models import Conversation, Handover, Message, Notification
from conversations.services import Asker, ask, wait
from tests import factories

NOBODY = Asker(None)
PERSON = "I want to talk to a human."
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def staffed(settings: Settings) -> None:
    """Somebody is there."""
    settings.HANDOVER = True


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("anna", is_staff=True)


@pytest.fixture
def ben() -> User:
    return User.objects.create_user("ben", is_staff=True)


@pytest.fixture
def with_staff(listening: None) -> Handover:
    """A conversation that a user asked a person into."""
    talk = factories.conversation("s")
    factories.turn(talk, PERSON, status=Status.WITH_STAFF, small_talk="person", response="Soon.")
    return Handover.objects.get()


def said(talk: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in talk.messages.order_by("created")]


def end(envelope: Envelope, status: Status = Status.COMPLETED, **wrote: Any) -> None:
    """End the turn as if agents had written these attributes."""
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=envelope.pk)
        locked.payload |= {"response": "The answer.", "citations_used": [], **wrote}
        envelopes.end(locked, status)


@pytest.mark.usefixtures("working")
def test_who_asks_for_a_person_is_handed_over_with_one_sentence() -> None:
    envelope = wait(ask(PERSON, NOBODY, session="s"))
    row = Handover.objects.get()
    assert reply(envelope)["status"] == "with_staff"
    assert reply(envelope)["suggested_actions"] == []
    assert "our staff" in reply(envelope)["reply"]
    assert row.why == Handover.Why.PERSON
    assert row.conversation.status == Conversation.Status.WITH_STAFF
    assert [role for role, _ in said(row.conversation)] == ["user", "assistant"]


@pytest.mark.usefixtures("working")
def test_out_of_hours_the_user_is_told_when_somebody_is_there_and_is_handed_over_all_the_same(
    settings: Settings,
) -> None:
    settings.OPENING_HOURS = OpeningHours.parse("mon 00:00-00:01 Pacific/Auckland")
    envelope = wait(ask("Ich möchte mit einem Menschen sprechen.", NOBODY, session="s"))
    assert "Montag" in reply(envelope)["reply"]
    assert "Pacific/Auckland" in reply(envelope)["reply"]
    assert Handover.objects.get().is_open


@pytest.mark.usefixtures("working")
def test_without_handover_who_asks_for_a_person_stays_with_the_assistant(
    settings: Settings,
) -> None:
    settings.HANDOVER = False
    envelope = wait(ask(PERSON, NOBODY, session="s"))
    assert envelope.status == Status.COMPLETED
    assert not Handover.objects.exists()


@pytest.mark.usefixtures("working")
def test_who_was_asked_back_too_often_is_handed_over(settings: Settings) -> None:
    factories.collection()
    settings.MAX_CLARIFICATION_ROUNDS = 1
    # Nothing of it is in the documents.
    question = "Which quasar pulses brightest in Andromeda?"
    assert wait(ask(question, NOBODY, session="s")).status == Status.AWAITING_USER
    envelope = wait(ask("The third brightest quasar there", NOBODY, session="s"))
    assert envelope.status == Status.WITH_STAFF
    assert "our staff" in reply(envelope)["reply"]
    assert Handover.objects.get().why == Handover.Why.ROUNDS
    assert Conversation.objects.get().clarification_rounds == 0


def test_what_is_said_to_staff_is_stored_and_answered_by_no_agent(with_staff: Handover) -> None:
    for key in events.connection().scan_iter(presence.KEY_PREFIX + "*"):
        events.connection().delete(key)
    envelope = wait(ask("It is about my invoice.", NOBODY, session="s"))
    result = reply(envelope)
    assert (result["status"], result["reply"]) == ("with_staff", "")
    assert result["turn_id"] == str(envelope.pk)
    assert result["usage"]["seconds"] >= 0
    assert said(with_staff.conversation)[-1] == ("user", "It is about my invoice.")
    assert set(envelope.steps.values_list("role", "status")) == {(Role.MANAGER, "cancelled")}


def test_staff_answer_and_the_user_is_waited_for(with_staff: Handover, anna: User) -> None:
    handover.say(with_staff.pk, anna, "Hello, which invoice?")
    with_staff.refresh_from_db()
    assert (with_staff.assigned, with_staff.waiting_since) == (anna, None)
    ask("The one of May.", NOBODY, session="s")
    with_staff.refresh_from_db()
    assert with_staff.waiting_since is not None
    first = with_staff.waiting_since
    ask("Number 7.", NOBODY, session="s")
    with_staff.refresh_from_db()
    assert with_staff.waiting_since == first
    assert said(with_staff.conversation)[2:] == [
        ("staff", "Hello, which invoice?"),
        ("user", "The one of May."),
        ("user", "Number 7."),
    ]


def test_an_answer_that_comes_after_staff_took_over_is_not_published(
    listening: None, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process dies before it has ended the turn.
    monkeypatch.setattr(handover, "_stop_turns", lambda conversation: None)
    envelope = ask("How?", NOBODY, session="s")
    handover.take_over(envelope.conversation_id, anna)
    citation = factories.CITATION
    end(envelope, citations_used=[citation], suggested_actions=["more"], quality_score=1.0)
    envelope.refresh_from_db()
    result = reply(envelope)
    assert (result["status"], result["reply"], result["citations"]) == ("with_staff", "", [])
    assert said(Conversation.objects.get()) == [("user", "How?")]
    assert Conversation.objects.get().status == Conversation.Status.WITH_STAFF


@pytest.mark.parametrize("status", [Status.AWAITING_USER, Status.FAILED, Status.WITH_STAFF])
def test_however_a_turn_ends_after_staff_took_over_it_says_nothing(
    listening: None, anna: User, monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    monkeypatch.setattr(handover, "_stop_turns", lambda conversation: None)
    envelope = ask("How?", NOBODY, session="s")
    handover.take_over(envelope.conversation_id, anna)
    end(envelope, status, clarification_reason="vague_request", canonical_question="How?")
    assert said(Conversation.objects.get()) == [("user", "How?")]
    assert Conversation.objects.get().open_clarification is None
    assert Handover.objects.count() == 1


def test_a_take_over_ends_the_turn_that_is_under_way(listening: None, anna: User) -> None:
    envelope = ask("How?", NOBODY, session="s")
    Envelope.objects.update(process_count=3)
    row = handover.take_over(envelope.conversation_id, anna)
    envelope.refresh_from_db()
    assert envelope.status == Status.WITH_STAFF
    assert said(row.conversation) == [("user", "How?")]
    assert row.waiting_since is not None
    told = events.follow(envelope.target_list, seconds=5)
    heard = [event[1:] for event in (next(told), next(told), next(told)) if event]
    assert [name for name, _ in heard] == ["workflow_start", "token", "workflow_complete"]
    # What was shown of an answer is void.
    assert (heard[1][1]["text"], heard[1][1]["replaces"]) == ("", True)


def test_what_a_withheld_turn_learnt_is_remembered(
    listening: None, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_stop_turns", lambda conversation: None)
    envelope = ask("How?", NOBODY, session="s")
    handover.take_over(envelope.conversation_id, anna)
    Envelope.objects.update(process_count=3)
    end(envelope, memory_updates={"facts": ["keep answers brief"]})
    assert Conversation.objects.get().facts == ["keep answers brief"]


def test_who_writes_to_staff_leaves_no_open_form_alone(with_staff: Handover) -> None:
    form = RefundForm().model_dump(mode="json")
    Conversation.objects.update(refund_form=form)
    ask("It is about my invoice.", NOBODY, session="s")
    assert Conversation.objects.get().refund_form == form


def test_a_message_to_staff_that_is_sent_again_is_taken_once(with_staff: Handover) -> None:
    sent = {"session": "s", "idempotency_key": "one"}
    first = ask("Hello?", NOBODY, **sent)  # type: ignore[arg-type]
    assert ask("Hello?", NOBODY, **sent) == first  # type: ignore[arg-type]
    assert len(said(with_staff.conversation)) == 3


def test_a_conversation_is_taken_by_who_comes_first(
    with_staff: Handover, anna: User, ben: User
) -> None:
    handover.take(with_staff.pk, anna)
    handover.take(with_staff.pk, anna)
    for act in (
        lambda: handover.take(with_staff.pk, ben),
        lambda: handover.say(with_staff.pk, ben, "Hello"),
        lambda: handover.give_back(with_staff.pk, ben, seen=None),
        lambda: handover.close(with_staff.pk, ben, seen=None),
    ):
        with pytest.raises(RefusedHandover, match="anna has taken"):
            act()
    handover.release(with_staff.pk)
    handover.take(with_staff.pk, ben)
    with_staff.refresh_from_db()
    assert with_staff.assigned == ben
    assert len(said(with_staff.conversation)) == 2


def test_a_taken_over_conversation_is_not_taken_over_again(with_staff: Handover, ben: User) -> None:
    with pytest.raises(RefusedHandover, match="with staff already"):
        handover.take_over(with_staff.conversation_id, ben)


def test_where_nobody_is_handed_over_nothing_is_taken_over(
    listening: None, anna: User, settings: Settings
) -> None:
    settings.HANDOVER = False
    envelope = ask("How?", NOBODY, session="s")
    with pytest.raises(RefusedHandover, match="HANDOVER=true"):
        handover.take_over(envelope.conversation_id, anna)


def test_the_next_turn_sees_what_staff_said_and_their_note_marked(
    with_staff: Handover, anna: User
) -> None:
    handover.say(with_staff.pk, anna, "Invoice 7 is paid.")
    handover.give_back(with_staff.pk, anna, seen=None, note=" Wants brief answers. ")
    envelope = ask("And the next?", NOBODY, session="s")
    assert [(each["role"], each["text"]) for each in envelope.memory["history"][-2:]] == [
        ("staff", "Invoice 7 is paid."),
        ("staff", "Note for the assistant, not told to the user: Wants brief answers."),
    ]
    end(envelope)
    assert said(with_staff.conversation)[-1] == ("assistant", "The answer.")
    with_staff.refresh_from_db()
    assert (with_staff.note, with_staff.is_open) == ("Wants brief answers.", False)


def test_nobody_leaves_a_message_unread(with_staff: Handover, anna: User) -> None:
    seen = handover.say(with_staff.pk, anna, "Which invoice?").created
    ask("Number 7.", NOBODY, session="s")
    with pytest.raises(RefusedHandover, match="written meanwhile"):
        handover.give_back(with_staff.pk, anna, seen=seen)
    with_staff.refresh_from_db()
    assert with_staff.is_open
    latest = Message.objects.order_by("created").last()
    assert latest is not None
    handover.close(with_staff.pk, anna, seen=latest.created)
    with_staff.refresh_from_db()
    assert with_staff.closed is not None
    assert Conversation.objects.get().status == Conversation.Status.OPEN


def test_what_came_while_staff_wrote_still_waits_for_them(with_staff: Handover, anna: User) -> None:
    seen = handover.say(with_staff.pk, anna, "Which invoice?").created
    ask("Number 7.", NOBODY, session="s")
    handover.say(with_staff.pk, anna, "Are you there?", seen=seen)
    with_staff.refresh_from_db()
    unseen = with_staff.conversation.messages.get(text="Number 7.")
    assert (with_staff.waiting_since, with_staff.read_until) == (unseen.created, seen)


def test_what_has_ended_stays_as_it_is(with_staff: Handover, anna: User) -> None:
    handover.close(with_staff.pk, anna, seen=None)
    envelope = ask("How?", NOBODY, session="s")
    for act in (
        lambda: handover.take(with_staff.pk, anna),
        lambda: handover.release(with_staff.pk),
        lambda: handover.say(with_staff.pk, anna, "Hello"),
        lambda: handover.close(with_staff.pk, anna, seen=None),
    ):
        with pytest.raises(RefusedHandover, match="not with staff any more"):
            act()
    envelope.refresh_from_db()
    assert envelope.status == Status.RUNNING


def test_a_conversation_can_be_handed_over_again(with_staff: Handover, anna: User) -> None:
    handover.close(with_staff.pk, anna, seen=None)
    end(ask(PERSON, NOBODY, session="s"), Status.WITH_STAFF, small_talk="person")
    assert [row.is_open for row in Handover.objects.all()] == [False, True]


def test_a_conversation_is_with_staff_once_at_a_time(with_staff: Handover) -> None:
    with pytest.raises(IntegrityError, match="handover_open_once_per_conversation"):
        Handover.objects.create(conversation=with_staff.conversation, why=Handover.Why.STAFF)


def test_messages_keep_their_order_whatever_the_clocks_of_their_writers(
    with_staff: Handover, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Message.objects.order_by("created").last()
    assert before is not None
    monkeypatch.setattr("conversations.models.now", lambda: with_staff.conversation.created)
    late = handover.say(with_staff.pk, anna, "From a machine whose clock is behind.")
    assert late.created > before.created


@pytest.mark.parametrize(
    ("webhook", "emails", "channels"),
    [
        ("", [], set()),
        ("https://desk.example.org/", [], {"webhook"}),
        ("https://desk.example.org/", ["desk@example.org"], {"webhook", "email"}),
    ],
)
def test_staff_are_told_in_every_way_that_is_set(
    listening: None, settings: Settings, webhook: str, emails: list[str], channels: set[str]
) -> None:
    settings.HANDOVER_WEBHOOK, settings.HANDOVER_EMAIL = webhook, emails
    end(ask(PERSON, NOBODY, session="s"), Status.WITH_STAFF, small_talk="person")
    assert set(Notification.objects.values_list("channel", flat=True)) == channels


def test_who_takes_a_conversation_over_need_not_be_told(
    listening: None, settings: Settings, anna: User
) -> None:
    settings.HANDOVER_WEBHOOK = "https://desk.example.org/"
    handover.take_over(ask("How?", NOBODY, session="s").conversation_id, anna)
    assert not Notification.objects.exists()


def test_a_forgotten_conversation_takes_its_handovers_along(
    with_staff: Handover, settings: Settings
) -> None:
    Notification.objects.create(handover=with_staff, channel=Notification.Channel.EMAIL)
    forget(with_staff.conversation)
    assert not Handover.objects.exists()
    assert not Notification.objects.exists()
