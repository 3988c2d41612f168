"""Billing tools: what the billing role may have looked up and done for whom it talks to.

Whose account it is comes from the caller, that is from the client's key or session. No tool takes
the id of a user, so no text can name another one.
"""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from agents.billing import refunds
from agents.billing.models import MOST_REFUNDED, CaseEvent, Invoice, RefundCase
from agents.names import Role
from agents.tools.tool import Arguments, Caller, Effect, Finding, RefusedArguments, tool

MOST_INVOICES = 24
UNKNOWN_CUSTOMER = "Whoever is asking has no account here. Do not ask for an id: none would help."
DECIDED = (CaseEvent.Kind.APPROVED, CaseEvent.Kind.REJECTED)


def _not_logical(value: Any) -> Any:
    """Refuse true and false, which Python takes for 1 and 0. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("write an amount")  # noqa: TRY004 pydantic hears of it
    return value


Word = Annotated[str, StringConstraints(strip_whitespace=True, max_length=64)]
# Exact: models write texts as they read them, and numbers as floats.
Amount = Annotated[Decimal, BeforeValidator(_not_logical), WithJsonSchema({"type": "string"})]

# Written out: strict endpoints take no description beside a reference.
REASONS = {"type": "string", "enum": list(RefundCase.Reason.values)}
Reason = Annotated[RefundCase.Reason, WithJsonSchema(REASONS)]


class Nothing(Arguments):
    """A tool that needs to be told nothing."""


class CaseNumber(Arguments):
    """Which case."""

    case: Word = Field(description="number of the case, like R10001")


class Wish(Arguments):
    """What is to be paid back, and why."""

    invoice: Word = Field(description="number of the invoice, as get_invoices has it")
    amount: Amount = Field(
        description="as the customer named it, digits alone, like 45.00; above 0, at most 1,000"
    )
    currency: Word = Field(
        default="", description="code like PLN if the customer named a currency, else empty"
    )
    reason: Reason = Field(description="what the customer gave as the reason")
    description: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)] = Field(
        default="", description="what happened, in the customer's own words; empty if not said"
    )


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_subscription(arguments: Nothing, caller: Caller) -> Finding:
    """Look up the customer's plan: name, price a month, currency, status and first day."""
    _customer(caller)
    found = [
        {
            "plan": each.plan.code,
            "name": each.plan.name,
            "price_a_month": each.plan.price,
            "currency": each.plan.currency,
            "status": each.status,
            "started": each.started,
            "cooling_off_until": refunds.cooling_off_ends(each),
        }
        for each in refunds.subscriptions(caller.user_id)
    ]
    return Finding(found, is_empty=not found)


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_invoices(arguments: Nothing, caller: Caller) -> Finding:
    """Look up the customer's invoices, the newest first, each with its refund cases."""
    _customer(caller)
    found = [_invoice(each) for each in refunds.invoices(caller.user_id)[:MOST_INVOICES]]
    return Finding(found, is_empty=not found)


@tool(
    roles=[Role.BILLING], timeout=5, critical=True, effect=Effect.HERE, identity=["invoice"]
)  # fmt: skip
def open_refund_case(arguments: Wish, caller: Caller) -> dict[str, Any]:
    """Open a refund case for an invoice. Call it once you have invoice, amount and reason.

    The customer must have named all three: ask for what is missing, never guess.
    """
    _customer(caller)
    try:
        case = refunds.open_case(
            caller.user_id,
            invoice_number=arguments.invoice,
            amount=arguments.amount,
            reason=arguments.reason,
            currency=arguments.currency,
            description=arguments.description,
        )
    except refunds.RefusedRefund as refusal:
        raise RefusedArguments(str(refusal)) from refusal
    return _case(case) | {
        "next_steps": f"Staff check it within {refunds.BUSINESS_DAYS} business days. If approved, "
        f"the money is back in {refunds.PAID_BACK_DAYS} days, the way it was paid."
    }


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_refund_case(arguments: CaseNumber, caller: Caller) -> dict[str, Any]:
    """Look up what became of a refund case of the customer."""
    case = refunds.case(_customer(caller), arguments.case)
    if case is None:
        raise RefusedArguments(f"The customer has no case {arguments.case!r}.")
    decision = case.events.filter(kind__in=DECIDED).first()
    return _case(case) | {"said_by_staff": decision.comment if decision else ""}


@tool(roles=[Role.BILLING], timeout=5)
def get_refund_policy(arguments: Nothing, caller: Caller) -> dict[str, Any]:
    """Look up the rules of refunds: limits, reasons, terms, and what is not refunded."""
    return {
        "most_of_one_case": MOST_REFUNDED,
        "reasons": list(RefundCase.Reason.values),
        "cooling_off_days": refunds.COOLING_OFF_DAYS,
        "decided_in_business_days": refunds.BUSINESS_DAYS,
        "paid_back_days_after_approval": refunds.PAID_BACK_DAYS,
        "not_refundable": refunds.NOT_REFUNDABLE,
        "notes": [
            "An invoice is refunded once, in the currency of the plan, and not beyond its amount.",
            "Weekends and public holidays are no business days.",
        ],
    }


def _customer(caller: Caller) -> str:
    """Return the user id of the customer who is asking. Raises RefusedArguments."""
    if refunds.customer(caller.user_id) is None:
        raise RefusedArguments(UNKNOWN_CUSTOMER)
    return caller.user_id


def _invoice(invoice: Invoice) -> dict[str, Any]:
    return {
        "invoice": invoice.number,
        "issued": invoice.issued,
        "amount": invoice.amount,
        "currency": invoice.subscription.plan.currency,
        "for": invoice.what,
        "cases": [f"{case.number}, {case.status}" for case in invoice.cases.all()],
    }


def _case(case: RefundCase) -> dict[str, Any]:
    return {
        "case": case.number,
        "status": case.status,
        "invoice": case.invoice.number,
        "amount": case.amount,
        "currency": case.currency,
        "reason": case.reason,
        "decided_by": case.due,
    }
