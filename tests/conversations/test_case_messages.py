"""Case messages: staff decide, and the conversation in which the case was opened hears of it."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from agents import envelopes
from agents.attributes import RefundForm
from agents.billing.models import Invoice, RefundCase
from agents.billing.refunds import comment_on, decide, open_case
from agents.models import Envelope
from agents.names import Role, Status
from agents.tools.toolbox import Toolbox
from conversations import expiry
from conversations.case_messages import turn_of
from conversations.erasure import forget
from conversations.models import Conversation
from conversations.turn_memory import recall
from tests import factories
from tests.agents.billing.accounts import account
from tests.agents.tools.bench import step_of

Opening = Callable[..., RefundCase]


@pytest.fixture
def talk(transactional_db: None) -> Conversation:
    """A conversation of a customer with two invoices."""
    first = account("u123")
    Invoice.objects.create(
        number="INV-2", subscription=first.subscription, amount=45, issued=date(2025, 11, 1)
    )
    made = factories.conversation()
    Conversation.objects.filter(pk=made.pk).update(user_id="u123")
    made.refresh_from_db()
    return made


@pytest.fixture
def opened(talk: Conversation) -> Opening:
    """Have a case opened in a turn of the conversation."""

    def opening(invoice: str = "INV-u123", **payload: Any) -> RefundCase:
        envelope = factories.turn(talk, "Refund it.", status=Status.RUNNING, **payload)
        box = Toolbox.of(step_of(envelope, Role.BILLING))
        run = box.call("open_refund_case", invoice=invoice, amount="20", reason="overcharge")
        assert run.result, run.error
        end(envelope, run.result["case"], **payload)
        talk.refresh_from_db()
        return RefundCase.objects.latest("pk")

    return opening


def end(envelope: Envelope, case: str, **payload: Any) -> None:
    """End the turn in which a case was opened."""
    state = {"billing_case_id": case, "context_flags": {"refund_in_progress": True}}
    with transaction.atomic():
        locked = Envelope.objects.select_for_update().get(pk=envelope.pk)
        locked.payload |= {"state_updates": state | {"refund_form": None}, **payload}
        envelopes.end(locked, Status.COMPLETED)


def told(talk: Conversation) -> list[tuple[str, str]]:
    """Return what was said without having been asked."""
    talk.refresh_from_db()
    return list(talk.messages.filter(turn=None).values_list("role", "text"))


def test_an_approval_is_told_in_the_language_of_the_turn_and_the_flag_is_cleared(
    talk: Conversation, opened: Opening
) -> None:
    case = opened(language="pl")
    assert talk.context_flags == {"refund_in_progress": True}
    decide(case.pk, approve=True, by=None)
    ((role, text),) = told(talk)
    assert role == "assistant"
    assert text.startswith(f"Sprawa o zwrot {case.number} została zatwierdzona: 20.00 PLN")
    assert talk.context_flags == {"refund_in_progress": False}
    assert talk.billing_case_id == case.number


def test_a_rejection_says_why_and_the_next_turn_sees_it(
    talk: Conversation, opened: Opening
) -> None:
    case = opened()
    decide(case.pk, approve=False, by=None, comment="The charge was right.")
    ((_, text),) = told(talk)
    assert f"Refund case {case.number} was rejected" in text
    assert text.endswith("The charge was right.")
    assert recall(talk, "Why?")["history"][-1]["text"] == text


def test_staff_may_tell_something_and_comment_among_themselves(
    talk: Conversation, opened: Opening
) -> None:
    case, staff = opened(), User.objects.create_user("ada")
    comment_on(case.pk, by=staff, comment="Looks odd.")
    comment_on(case.pk, by=staff, comment="We look into it.", tell=True)
    assert told(talk) == [
        ("staff", f"Our staff wrote about case {case.number}: We look into it.")
    ]  # fmt: skip
    assert talk.context_flags == {"refund_in_progress": True}
    assert [event.kind for event in case.events.all()] == ["opened", "commented", "told"]


def test_a_conversation_expires_once_its_case_is_decided_and_the_case_stays(
    talk: Conversation, opened: Opening, settings: LazySettings
) -> None:
    settings.CONVERSATION_TTL_DAYS = 30
    case, long_ago = opened(), now() - timedelta(days=31)
    Conversation.objects.update(updated=long_ago)
    assert not expiry.forget_expired()["conversations"]
    decide(case.pk, approve=True, by=None)
    assert not expiry.forget_expired()["conversations"]
    Conversation.objects.update(updated=long_ago)
    assert expiry.forget_expired()["conversations"] == 1
    case.refresh_from_db()
    assert (case.status, turn_of(case)) == (RefundCase.Status.APPROVED, None)


def test_the_admin_tells_and_shows_it(talk: Conversation, opened: Opening, client: Client) -> None:
    case = opened()
    client.force_login(User.objects.create_superuser("root"))
    form = {"events-TOTAL_FORMS": "0", "events-INITIAL_FORMS": "0"}
    address = reverse("admin:billing_refundcase_change", args=[case.pk])
    client.post(address, form | {"action": "tell", "comment": "Please be patient."})
    client.post(address, form | {"action": "approve", "comment": ""})
    assert [role for role, _ in told(talk)] == ["staff", "assistant"]
    answer = client.get(reverse("admin:conversations_conversation_change", args=[talk.pk]))
    page = answer.content.decode()
    assert "Please be patient." in page
    assert f"Refund case {case.number} was approved" in page
    assert f"<dt>Refund case</dt><dd>{case.number}</dd>" in page


def test_a_decision_that_is_not_committed_tells_nobody(talk: Conversation, opened: Opening) -> None:
    case = opened()
    with transaction.atomic():
        decide(case.pk, approve=True, by=None)
        transaction.set_rollback(True)
    assert told(talk) == []
    assert talk.context_flags == {"refund_in_progress": True}


def test_of_two_cases_each_is_told_and_the_flag_waits_for_the_last(
    talk: Conversation, opened: Opening
) -> None:
    first, second = opened(), opened("INV-2")
    decide(first.pk, approve=True, by=None)
    assert len(told(talk)) == 1
    assert talk.context_flags == {"refund_in_progress": True}
    decide(second.pk, approve=True, by=None)
    assert len(told(talk)) == 2
    assert talk.context_flags == {"refund_in_progress": False}


def test_a_form_that_is_open_keeps_the_flag(talk: Conversation, opened: Opening) -> None:
    case = opened()
    form = RefundForm(invoice="INV-2").model_dump(mode="json")
    Conversation.objects.filter(pk=talk.pk).update(refund_form=form)
    decide(case.pk, approve=True, by=None)
    assert len(told(talk)) == 1
    assert talk.context_flags == {"refund_in_progress": True}


def test_a_case_whose_turn_came_to_nothing_is_told_all_the_same(talk: Conversation) -> None:
    envelope = factories.turn(talk, status=Status.RUNNING)
    box = Toolbox.of(step_of(envelope, Role.BILLING))
    box.call("open_refund_case", invoice="INV-u123", amount="20", reason="overcharge")
    envelopes.cancel(envelope.pk)
    decide(RefundCase.objects.get().pk, approve=True, by=None)
    assert len(told(talk)) == 1


def test_a_case_of_no_conversation_or_of_a_forgotten_one_is_decided_quietly(
    talk: Conversation, opened: Opening
) -> None:
    case = opened()
    forget(talk)
    decide(case.pk, approve=True, by=None)
    lone = open_case("u123", invoice_number="INV-2", amount=Decimal(1), reason="other")
    decide(lone.pk, approve=True, by=None)
    assert not Conversation.objects.exists()
