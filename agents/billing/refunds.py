"""Refunds: the rules by which a case is opened and decided, and what a customer may see of it.

Whose money it is about is said by a `user_id` that the caller vouches for. What is another's is
told the same as what does not exist.
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.dispatch import Signal

from agents.billing.business_days import business_day_after
from agents.billing.models import (
    MOST_REFUNDED,
    CaseEvent,
    Customer,
    Invoice,
    RefundCase,
    Subscription,
    case_key,
    today,
)
from agents.billing.system import CENT, RefusedRefund

COOLING_OFF_DAYS = 14
BUSINESS_DAYS = 5  # in which a case is decided
PAID_BACK_DAYS = "7-10"  # after that
NOT_REFUNDABLE = (
    "One-time activation fees after activation",
    "Usage outside of the plan (premium services)",
)
ONCE = "refund_once_for_an_invoice"
# Sent with `event`, which the customer is to be told of, in the transaction that writes it.
customer_event = Signal()


def customer(user_id: str) -> Customer | None:
    """Return who is asking; None for who is no customer, and for who did not say."""
    return Customer.objects.filter(user_id=user_id).first() if user_id else None


def subscriptions(user_id: str) -> QuerySet[Subscription]:
    """Return the subscriptions of a customer, the newest first."""
    return Subscription.objects.filter(customer__in=_own(user_id)).select_related("plan")


def invoices(user_id: str) -> QuerySet[Invoice]:
    """Return the invoices of a customer, the newest first."""
    own = Invoice.objects.filter(subscription__customer__in=_own(user_id))
    return own.select_related("subscription__plan").prefetch_related("cases")


def case(user_id: str, number: str) -> RefundCase | None:
    """Return a case of the customer by its number."""
    own = RefundCase.objects.filter(invoice__subscription__customer__in=_own(user_id))
    key = case_key(number)
    return own.select_related("invoice").filter(pk=key).first() if key else None


def _own(user_id: str) -> QuerySet[Customer]:
    return Customer.objects.filter(user_id=user_id) if user_id else Customer.objects.none()


def open_case(
    user_id: str,
    *,
    invoice_number: str,
    amount: Decimal,
    reason: str,
    currency: str = "",
    description: str = "",
) -> RefundCase:
    """Open a case for an amount of an invoice. Raises RefusedRefund.

    Sessions that ask for one invoice at the same time wait for each other. An empty currency is
    that of the plan.
    """
    refuse_amount(amount)
    if reason not in RefundCase.Reason:
        allowed = ", ".join(RefundCase.Reason)
        raise RefusedRefund(f"{reason[:40]!r} is no reason for a refund; allowed: {allowed}.")
    try:
        with transaction.atomic():
            invoice = _locked(user_id, invoice_number)
            _refuse_terms(invoice, amount, reason, currency.strip().upper())
            return _opened(
                invoice, amount=amount.quantize(CENT), reason=reason, description=description
            )
    except IntegrityError as error:
        if ONCE not in str(error):
            raise
        raise RefusedRefund(f"There is a case for the invoice {invoice_number} already.") from error


def refuse_amount(amount: Decimal) -> None:
    """Raise RefusedRefund unless it is an exact amount above 0 of at most 1,000."""
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int):
        raise RefusedRefund("The amount is no number.")
    if not 0 < amount <= MOST_REFUNDED:
        raise RefusedRefund(f"The amount must be above 0 and at most {MOST_REFUNDED:,}.")
    if not -2 <= exponent <= 0:
        raise RefusedRefund("Write the amount with at most two decimals and no exponent: 45.00.")


def _locked(user_id: str, number: str) -> Invoice:
    """Return an invoice of the customer, which no other session can refund until we are done."""
    own = Invoice.objects.filter(subscription__customer__in=_own(user_id), number=number.strip())
    found = own.select_related("subscription__plan").select_for_update(of=("self",)).first()
    if found is None:
        raise RefusedRefund(f"The customer has no invoice {number.strip()[:64]!r}.")
    return found


def _refuse_terms(invoice: Invoice, amount: Decimal, reason: str, currency: str) -> None:
    """Raise RefusedRefund for what the terms of an invoice do not allow."""
    plan = invoice.subscription.plan
    if currency and currency != plan.currency:
        raise RefusedRefund(
            f"The invoice {invoice.number} is in {plan.currency}; "
            f"nothing is refunded in {currency[:12]}."
        )
    if amount > invoice.amount:
        raise RefusedRefund(
            f"The invoice {invoice.number} is of {invoice.amount} {plan.currency}; "
            "no more than that can be refunded."
        )
    earlier = invoice.cases.exclude(status=RefundCase.Status.REJECTED).first()
    if earlier:
        raise RefusedRefund(
            f"The invoice {invoice.number} has the case {earlier.number} already "
            f"({earlier.amount} {earlier.currency}, {earlier.status}): it is refunded once."
        )
    last = cooling_off_ends(invoice.subscription)
    if reason == RefundCase.Reason.WITHIN_COOLING_OFF and today() > last:
        raise RefusedRefund(
            f"The {COOLING_OFF_DAYS} days of cooling-off ended on {last}; "
            "another reason may still apply."
        )


def cooling_off_ends(subscription: Subscription) -> date:
    """Return the last day on which a customer may withdraw; the first is the day after."""
    return subscription.started + timedelta(days=COOLING_OFF_DAYS)


def _opened(invoice: Invoice, **values: Any) -> RefundCase:
    plan = invoice.subscription.plan
    due = business_day_after(today(), BUSINESS_DAYS, plan.country)
    made = RefundCase.objects.create(invoice=invoice, currency=plan.currency, due=due, **values)
    made.events.create(kind=CaseEvent.Kind.OPENED, comment=made.description)
    return made


def decide(key: int, *, approve: bool, by: Any, comment: str = "") -> RefundCase:
    """Approve or reject an open case, once. Raises RefusedRefund.

    A rejection says why: the customer is told.
    """
    if not approve and not comment.strip():
        raise RefusedRefund("Say why it is rejected: the customer is told.")
    with transaction.atomic():
        found = RefundCase.objects.select_for_update().get(pk=key)
        if found.status != RefundCase.Status.OPENED:
            raise RefusedRefund(f"{found.number} is {found.status} already.")
        found.status = RefundCase.Status.APPROVED if approve else RefundCase.Status.REJECTED
        found.save(update_fields=["status"])
        event = found.events.create(kind=found.status, by=by, comment=comment.strip())
        customer_event.send(CaseEvent, event=event)
    return found


def comment_on(key: int, *, by: Any, comment: str, tell: bool = False) -> None:
    """Add a comment of staff to a case, which the customer may be told. Raises RefusedRefund."""
    if not comment.strip():
        raise RefusedRefund("Write a comment first.")
    kind = CaseEvent.Kind.TOLD if tell else CaseEvent.Kind.COMMENTED
    with transaction.atomic():
        event = RefundCase.objects.get(pk=key).events.create(
            kind=kind, by=by, comment=comment.strip()
        )
        if tell:
            customer_event.send(CaseEvent, event=event)
