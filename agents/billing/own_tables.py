"""Own tables: the system of billing that is used where no other is named, with Docent's rules."""

from collections.abc import Sequence

from agents.billing import models, refunds
from agents.billing.system import (
    MOST_INVOICES,
    BillingSystem,
    Case,
    Invoice,
    Policy,
    Subscription,
    UnknownCustomer,
    Wish,
)

DECIDED = (models.CaseEvent.Kind.APPROVED, models.CaseEvent.Kind.REJECTED)
NEXT_STEPS = (
    f"Staff check it within {refunds.BUSINESS_DAYS} business days. If approved, the money is back "
    f"in {refunds.PAID_BACK_DAYS} days, the way it was paid."
)


class OwnTables(BillingSystem):
    """What staff keep in the admin."""

    is_here = True

    def subscriptions(self, user_id: str, *, seconds: float) -> Sequence[Subscription]:
        """Return the rows of the customer."""
        _require(user_id)
        return [_subscription(each) for each in refunds.subscriptions(user_id)]

    def invoices(self, user_id: str, *, seconds: float) -> Sequence[Invoice]:
        """Return the newest rows of the customer."""
        _require(user_id)
        return [_invoice(each) for each in refunds.invoices(user_id)[:MOST_INVOICES]]

    def open_case(self, user_id: str, wish: Wish, *, key: str, seconds: float) -> Case:
        """Open a case by the rules. The transaction sees to it that this happens once."""
        _require(user_id)
        made = refunds.open_case(
            user_id,
            invoice_number=wish.invoice,
            amount=wish.amount,
            reason=wish.reason,
            currency=wish.currency,
            description=wish.description,
        )
        return _case(made)

    def case(self, user_id: str, number: str, *, seconds: float) -> Case | None:
        """Return the case with what staff said."""
        _require(user_id)
        found = refunds.case(user_id, number)
        return _case(found) if found else None

    def policy(self, *, seconds: float) -> Policy:
        """Return the rules as the code has them."""
        return Policy(
            most_of_one_case=models.MOST_REFUNDED,
            reasons=list(models.RefundCase.Reason.values),
            cooling_off_days=refunds.COOLING_OFF_DAYS,
            decided_in_business_days=refunds.BUSINESS_DAYS,
            paid_back_days_after_approval=refunds.PAID_BACK_DAYS,
            not_refundable=list(refunds.NOT_REFUNDABLE),
            notes=[
                "An invoice is refunded once, in the currency of the plan, and not beyond its "
                "amount.",
                "Weekends and public holidays are no business days.",
            ],
        )


def _require(user_id: str) -> None:
    if refunds.customer(user_id) is None:
        raise UnknownCustomer


def _subscription(row: models.Subscription) -> Subscription:
    return Subscription(
        plan=row.plan.code,
        name=row.plan.name,
        price_a_month=row.plan.price,
        currency=row.plan.currency,
        status=row.status,
        started=row.started,
        cooling_off_until=refunds.cooling_off_ends(row),
    )


def _invoice(row: models.Invoice) -> Invoice:
    return Invoice(
        invoice=row.number,
        issued=row.issued,
        amount=row.amount,
        currency=row.subscription.plan.currency,
        what=row.what,
        cases=[f"{case.number}, {case.status}" for case in row.cases.all()],
    )


def _case(row: models.RefundCase) -> Case:
    decision = row.events.filter(kind__in=DECIDED).first()
    return Case(
        case=row.number,
        status=models.RefundCase.Status(row.status).value,
        invoice=row.invoice.number,
        amount=row.amount,
        currency=row.currency,
        reason=row.reason,
        decided_by=row.due,
        said_by_staff=decision.comment if decision else "",
        next_steps="" if decision else NEXT_STEPS,
    )
