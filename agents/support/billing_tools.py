"""Billing tools: what the billing role may have looked up and done for whom it talks to.

Whose account it is comes from the caller, that is from the client's key or session. No tool takes
the id of a user, so no text can name another one. What they know is the billing system's, Docent's
own or another.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from agents.billing import system
from agents.billing.models import RefundCase
from agents.billing.refunds import refuse_amount
from agents.billing.system import MOST_INVOICES, RefusedRefund, UnknownCustomer, billing_system
from agents.names import Role
from agents.tools.tool import Arguments, Caller, Effect, Finding, RefusedArguments, tool

UNKNOWN_CUSTOMER = "Whoever is asking has no account here. Do not ask for an id: none would help."


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


@contextmanager
def _customer(caller: Caller) -> Iterator[str]:
    """Have the user id at hand; what its system refuses is said as a refusal of the tool.

    Raises RefusedArguments.
    """
    if not caller.user_id:
        raise RefusedArguments(UNKNOWN_CUSTOMER)
    try:
        yield caller.user_id
    except UnknownCustomer as error:
        raise RefusedArguments(UNKNOWN_CUSTOMER) from error
    except RefusedRefund as refusal:
        raise RefusedArguments(str(refusal)) from refusal


def _where_cases_are() -> Effect:
    return Effect.HERE if billing_system().is_here else Effect.ELSEWHERE


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_subscription(arguments: Nothing, caller: Caller) -> Finding:
    """Look up the customer's plan: name, price a month, currency, status and first day."""
    with _customer(caller) as user_id:
        found = billing_system().subscriptions(user_id, seconds=caller.seconds_left())
    return Finding(found, is_empty=not found)


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_invoices(arguments: Nothing, caller: Caller) -> Finding:
    """Look up the customer's invoices, the newest first, each with its refund cases."""
    with _customer(caller) as user_id:
        found = billing_system().invoices(user_id, seconds=caller.seconds_left())
    return Finding(found[:MOST_INVOICES], is_empty=not found)


@tool(
    roles=[Role.BILLING], timeout=5, critical=True, effect=_where_cases_are, identity=["invoice"]
)  # fmt: skip
def open_refund_case(arguments: Wish, caller: Caller) -> system.Case:
    """Open a refund case for an invoice. Call it once you have invoice, amount and reason.

    The customer must have named all three: ask for what is missing, never guess.
    """
    with _customer(caller) as user_id:
        refuse_amount(arguments.amount)
        wish = system.Wish(**arguments.model_dump())
        left = caller.seconds_left()
        return billing_system().open_case(user_id, wish, key=caller.key, seconds=left)


@tool(roles=[Role.BILLING], timeout=5, retries=1, critical=True)
def get_refund_case(arguments: CaseNumber, caller: Caller) -> system.Case:
    """Look up what became of a refund case of the customer."""
    with _customer(caller) as user_id:
        left = caller.seconds_left()
        found = billing_system().case(user_id, arguments.case, seconds=left)
    if found is None:
        raise RefusedArguments(f"The customer has no case {arguments.case!r}.")
    return found


@tool(roles=[Role.BILLING], timeout=5)
def get_refund_policy(arguments: Nothing, caller: Caller) -> system.Policy:
    """Look up the rules of refunds: limits, reasons, terms, and what is not refunded."""
    return billing_system().policy(seconds=caller.seconds_left())
