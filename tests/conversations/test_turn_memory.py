"""What a turn sees of its conversation, and what the conversation keeps of the turn."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction

from agents import envelopes
from agents.decision import Stage
from agents.models import Envelope
from agents.names import Role, Status
from agents.steps import presence
from agents.steps.concurrency import queue
from conversations.answers import reply
from conversations.errors import ForeignCollection, NobodyListens, TurnInProgress, UnusableText
from conversations.models import Conversation, Message
from conversations.services import Asker, ask, wait

NOBODY = Asker(None)


@pytest.fixture(autouse=True)
def listening(transactional_db: None) -> None:
    """Somebody listens to every queue."""
    presence.announce([role.queue for role in Role])


def end(envelope: Envelope, status: Status = Status.COMPLETED, **wrote: Any) -> None:
    """End the turn as if agents had written these attributes."""
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=envelope.pk)
        locked.payload |= {"response": "The answer.", **wrote}
        envelopes.end(locked, status)


def conversation(envelope: Envelope) -> Conversation:
    return Conversation.objects.get(pk=envelope.conversation_id)


def test_a_turn_stores_what_was_said_and_what_was_answered() -> None:
    envelope = ask("How?", NOBODY)
    end(envelope)
    messages = conversation(envelope).messages.values_list("role", "text")
    assert list(messages) == [("user", "How?"), ("assistant", "The answer.")]


def test_the_next_turn_sees_the_last_with_its_time() -> None:
    end(ask("How?", NOBODY, session="s"))
    history = ask("And then?", NOBODY, session="s").memory["history"]
    assert [(message["role"], message["text"]) for message in history] == [
        ("user", "How?"),
        ("assistant", "The answer."),
    ]
    assert all(message["time"].startswith("20") for message in history)


def test_what_was_learnt_is_remembered() -> None:
    learnt = {"facts": ["keep answers brief"], "topic": "funnels", "language_preference": "de"}
    end(ask("How?", NOBODY, session="s"), memory_updates=learnt)
    memory = ask("And?", NOBODY, session="s").memory
    assert memory["facts"] == ["keep answers brief"]
    assert memory["topic"] == "funnels"
    assert memory["language_preference"] == "de"


def test_a_fact_taken_back_is_forgotten_and_the_others_stay() -> None:
    known = {"facts": ["Keep answers brief", "is on the Business plan"]}
    end(ask("How?", NOBODY, session="s"), memory_updates=known)
    learnt = {"facts": ["always in detail"], "withdrawn": ["keep  answers brief", "never said"]}
    end(ask("How?", NOBODY, session="s"), memory_updates=learnt)
    facts = ask("And?", NOBODY, session="s").memory["facts"]
    assert facts == ["is on the Business plan", "always in detail"]


def test_a_language_asked_for_can_be_taken_back() -> None:
    end(ask("How?", NOBODY, session="s"), memory_updates={"language_preference": "de"})
    end(ask("How?", NOBODY, session="s"), memory_updates={"language_preference": None})
    third = ask("How?", NOBODY, session="s")
    assert third.memory["language_preference"] == "de"
    end(third, memory_updates={"language_preference": ""})
    assert ask("And?", NOBODY, session="s").memory["language_preference"] is None


def spoken(
    text: str, role: Role, status: Status = Status.COMPLETED, route: str | None = None
) -> str:
    """Have a turn in which this role spoke last; return who did on a route before it."""
    envelope = ask(text, NOBODY, session="s")
    envelope.steps.create(number=2, batch=1, role=role, stage=Stage.START, status="done")
    wrote = {"route": route} if route else {}
    if status is Status.AWAITING_USER:
        wrote |= {"canonical_question": text, "clarification_reason": "vague_request"}
    end(envelope, status, **wrote)
    before: str = envelope.memory["last_agent"]
    return before


@pytest.mark.parametrize(
    ("role", "status", "route", "remembered"),
    [
        (Role.COMMAND, Status.COMPLETED, None, "quality"),
        (Role.ESSENCE, Status.COMPLETED, None, "quality"),
        (Role.CLARIFICATION, Status.AWAITING_USER, None, "quality"),
        (Role.CLARIFICATION, Status.AWAITING_USER, "documentation", "documentation"),
        (Role.CLARIFICATION, Status.AWAITING_USER, "fallback", "quality"),
        (Role.SEARCH, Status.CANCELLED, "documentation", "quality"),
        (Role.RESPONSE, Status.COMPLETED, "documentation", "response"),
        (Role.QUALITY, Status.COMPLETED, "analysis", "orchestrator"),
        (Role.FALLBACK, Status.COMPLETED, "fallback", "fallback"),
    ],
)
def test_what_is_said_on_no_route_leaves_the_conversation_on_its_own(
    role: Role, status: Status, route: str | None, remembered: str
) -> None:
    spoken("How?", Role.QUALITY, route="documentation")
    assert spoken("And?", role, status, route) == "quality"
    assert ask("And?", NOBODY, session="s").memory["last_agent"] == remembered


def test_a_first_question_that_is_asked_back_about_is_on_its_route() -> None:
    spoken("How?", Role.CLARIFICATION, Status.AWAITING_USER, "documentation")
    assert ask("And?", NOBODY, session="s").memory["last_agent"] == "documentation"


def test_an_open_question_waits_for_the_reply_and_is_then_forgotten() -> None:
    payload = {
        "canonical_question": "How do I set it up?",
        "clarification_reason": "missing_context",
        "suggested_actions": ["the plugin", "the app"],
    }
    first = ask("How do I set it up?", NOBODY, session="s")
    end(first, Status.AWAITING_USER, **payload)
    assert conversation(first).status == Conversation.Status.AWAITING_USER
    second = ask("the plugin", NOBODY, session="s")
    assert second.memory["open_clarification"] == {
        "question": "How do I set it up?",
        "reason": "missing_context",
        "options": ["the plugin", "the app"],
    }
    assert second.memory["clarification_rounds"] == 1
    end(second)
    third = ask("Thanks. What is a funnel?", NOBODY, session="s")
    assert third.memory["open_clarification"] is None
    assert third.memory["clarification_rounds"] == 0


@pytest.mark.parametrize("status", [Status.FAILED, Status.EXPIRED, Status.CANCELLED])
def test_a_turn_that_came_to_nothing_lets_the_conversation_go_on(status: Status) -> None:
    first = ask("How?", NOBODY, session="s")
    end(first, status)
    assert ask("How?", NOBODY, session="s").conversation_id == first.conversation_id


def test_one_message_at_a_time() -> None:
    ask("How?", NOBODY, session="s")
    with pytest.raises(TurnInProgress):
        ask("And?", NOBODY, session="s")
    assert Message.objects.count() == 1


def test_the_same_session_of_another_owner_is_another_conversation(
    django_user_model: Any,
) -> None:
    alice = Asker(django_user_model.objects.create(username="alice"))
    first, second = ask("How?", NOBODY, session="s"), ask("How?", alice, session="s")
    assert first.conversation_id != second.conversation_id


def test_nothing_is_stored_when_the_message_is_refused() -> None:
    for text in ("", "x" * 8001, "a\x00b", "half \ud800"):
        with pytest.raises(UnusableText):
            ask(text, NOBODY)
    with pytest.raises(ForeignCollection, match="coffee"):
        ask("How?", NOBODY, collections=["coffee"])
    assert not Conversation.objects.exists()


def test_a_turn_that_could_never_run_is_refused_with_the_role_that_is_missing() -> None:
    presence.announce([role.queue for role in Role if role is not Role.QUALITY])
    with pytest.raises(NobodyListens, match="not at work right now"):
        ask("How?", NOBODY)
    assert not Conversation.objects.exists()


def test_an_envelope_without_a_conversation_ends_quietly() -> None:
    lone = envelopes.start({"text": "?"}, conversation_id=uuid4(), message_id=uuid4())
    end(lone)
    lone.refresh_from_db()
    assert lone.status == Status.COMPLETED


def test_every_queue_has_an_address_of_its_own() -> None:
    addresses = {(queue(role.queue).exchange.name, queue(role.queue).routing_key) for role in Role}
    assert len(addresses) == len(Role)


def test_who_waits_for_an_overdue_turn_ends_it_without_a_sweeper() -> None:
    envelope = ask("How?", NOBODY)
    Envelope.objects.update(deadline=envelope.create_ts - timedelta(seconds=9))
    envelope.refresh_from_db()
    assert wait(envelope).status == Status.EXPIRED


@pytest.mark.parametrize(("result", "stays"), [(None, True), ("exit", False)])
def test_small_talk_leaves_an_open_question_as_it_was_unless_the_user_leaves(
    result: str | None, stays: bool
) -> None:
    asked = {"canonical_question": "How do I set it up?", "clarification_reason": "missing_context"}
    end(ask("How do I set it up?", NOBODY, session="s"), Status.AWAITING_USER, **asked)
    second = ask("Are you a robot?", NOBODY, session="s")
    end(second, small_talk="nature", clarification_result=result, response="A robot.")
    assert (conversation(second).open_clarification is not None) == stays
    assert conversation(second).clarification_rounds == int(stays)
    waits = Conversation.Status.AWAITING_USER if stays else Conversation.Status.OPEN
    assert conversation(second).status == waits


def test_a_refusal_leaves_nothing_open_and_counts_no_round() -> None:
    for _ in range(4):
        envelope = ask("What is the weather?", NOBODY, session="s")
        end(envelope, clarification_reason="off_topic", response="I can't help with that.")
    assert conversation(envelope).open_clarification is None
    assert conversation(envelope).clarification_rounds == 0


FORM = {"invoice": "INV-1", "amount": "45.00", "reason": "other", "is_shown": True}


def keeping(**state: Any) -> dict[str, Any]:
    """What billing writes about a form that it works on."""
    flags = {"refund_in_progress": True}
    return {"billing_case_id": "", "context_flags": flags, "refund_form": FORM, **state}


def test_an_open_form_is_there_in_the_next_turn_and_in_the_excerpt() -> None:
    first = ask("Refund it.", NOBODY, session="s")
    end(first, state_updates=keeping())
    memory = ask("And?", NOBODY, session="s").memory
    assert memory["refund_form"]["amount"] == "45.00"
    assert memory["refund_form"]["is_shown"]
    assert memory["context_flags"] == {"refund_in_progress": True}
    excerpt = reply(first)["state_excerpt"]
    assert excerpt["refund_form"]["invoice"] == "INV-1"
    assert excerpt["context_flags"] == {"refund_in_progress": True}


def test_a_form_that_is_left_alone_takes_no_yes_and_closes_after_three_turns() -> None:
    end(ask("Refund it.", NOBODY, session="s"), state_updates=keeping())
    for beside in (0, 1, 2):
        envelope = ask("Why is the sky blue?", NOBODY, session="s")
        form = envelope.memory["refund_form"]
        assert (form["turns_beside"], form["is_shown"]) == (beside, beside == 0)
        end(envelope)
    memory = ask("And now?", NOBODY, session="s").memory
    assert memory["refund_form"] is None
    assert memory["context_flags"] == {"refund_in_progress": False}


def test_a_case_that_was_opened_is_remembered_and_closes_the_form() -> None:
    end(ask("Refund it.", NOBODY, session="s"), state_updates=keeping())
    second = ask("Yes.", NOBODY, session="s")
    end(second, state_updates=keeping(billing_case_id="R10001", refund_form=None))
    end(ask("Why is the sky blue?", NOBODY, session="s"))
    memory = ask("And?", NOBODY, session="s").memory
    assert (memory["refund_form"], memory["billing_case_id"]) == (None, "R10001")
    assert memory["context_flags"] == {"refund_in_progress": True}
    assert reply(second)["state_excerpt"]["billing_case_id"] == "R10001"
