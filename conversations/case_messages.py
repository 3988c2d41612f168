"""Case messages: what staff decide and say about a refund case, told in its conversation.

That is the conversation in which the case was opened, as the call of the tool has it that did so.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.dispatch import receiver

from agents.attributes import REFUND_IN_PROGRESS
from agents.billing import refunds
from agents.billing.models import CaseEvent, RefundCase
from agents.billing.refunds import customer_event
from agents.models import Envelope, ToolRun
from agents.words import ENGLISH, Phrase
from conversations.handover import ring
from conversations.models import Conversation, Message

DECISIONS: dict[str, Phrase] = {
    CaseEvent.Kind.APPROVED: Phrase.CASE_APPROVED,
    CaseEvent.Kind.REJECTED: Phrase.CASE_REJECTED,
}
# Between a case and the call that opened it, which one transaction wrote; for the index by time.
WITHIN = timedelta(minutes=5)


@receiver(customer_event)
def tell(sender: object, event: CaseEvent, **_: Any) -> None:
    """Write the message, in the transaction of the event; a case of no conversation has none.

    A decision is the assistant's to tell, with the words of staff; a word without one is theirs.
    """
    case = event.case
    turn = turn_of(case)
    conversation = (
        Conversation.objects.select_for_update().filter(pk=turn.conversation_id).first()
        if turn
        else None
    )
    if conversation is None or turn is None:
        return
    language = conversation.language_preference or turn.payload.get("language") or ENGLISH
    is_decision = event.kind in DECISIONS
    author = Message.Author.ASSISTANT if is_decision else Message.Author.STAFF
    conversation.message(author, "\n\n".join(_lines(event, case, language))).save()
    ring(conversation.pk)
    if is_decision and conversation.billing_case_id == case.number:
        is_open = conversation.refund_form is not None
        conversation.context_flags = {**conversation.context_flags, REFUND_IN_PROGRESS: is_open}
    conversation.save()


def turn_of(case: RefundCase) -> Envelope | None:
    """Return the turn in which a case was opened; None: it was in none, or that was forgotten."""
    opening = openings([case]).filter(created__range=(case.opened - WITHIN, case.opened + WITHIN))
    run = opening.select_related("envelope").first()
    return run.envelope if run else None


def openings(cases: Iterable[RefundCase]) -> QuerySet[ToolRun]:
    """Return the calls that opened these cases."""
    return ToolRun.objects.filter(
        effect_key__isnull=False,
        tool="open_refund_case",
        result__case__in=[case.number for case in cases],
    )


def _lines(event: CaseEvent, case: RefundCase, language: str) -> list[str]:
    values = {
        "case": case.number,
        "amount": case.amount,
        "currency": case.currency,
        "invoice": case.invoice.number,
        "days": refunds.PAID_BACK_DAYS,
        "comment": event.comment,
    }
    phrases = [DECISIONS.get(event.kind), Phrase.STAFF_SAID if event.comment else None]
    return [phrase.in_language(language, **values) for phrase in phrases if phrase]
