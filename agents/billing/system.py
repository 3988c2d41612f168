"""System: what keeps customers, invoices and refund cases, Docent's own tables or a company's own.

The tools of billing ask whichever class BILLING_SYSTEM names. A class of your own is derived from
`BillingSystem`; what its methods return is what models and customers are told.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Annotated, ClassVar, Literal, get_args

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

CENT = Decimal("0.01")
# Of what a system returns, so many invoices are used.
MOST_INVOICES = 24


class BillingError(Exception):
    """A system could not do what it was asked."""


class UnknownCustomer(BillingError):
    """Nobody is known under this user id."""


class RefusedRefund(BillingError):
    """A case that may not be opened or decided so; the message is a sentence that says why.

    Customers are told it: it names nobody else's invoices.
    """


class BrokenSystem(BillingError):
    """A system is away, or answered what it should not. The message is for the operator alone."""


class LateSystem(BillingError, TimeoutError):
    """A system did not answer in its time."""


class UnusableSystem(BillingError):
    """A class that cannot be used, or lacks a setting; the message says what is allowed."""


Money = Annotated[
    Decimal,
    Field(max_digits=12, decimal_places=2, allow_inf_nan=False),
    AfterValidator(lambda amount: amount.quantize(CENT)),
]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]  # of ISO 4217, like PLN

Reason = Literal["overcharge", "service_outage", "within_cooling_off", "other"]
Status = Literal["opened", "approved", "rejected"]
# As get_invoices tells of a case: its number and what became of it, like "R10001, opened".
CaseInBrief = Annotated[str, StringConstraints(pattern=rf"^\S.*, ({'|'.join(get_args(Status))})$")]


class Value(BaseModel):
    """Something that a system tells. What is not declared is left out."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Subscription(Value):
    """What a customer pays for."""

    plan: Name  # its code
    name: Name
    price_a_month: Money
    currency: Currency
    status: Name  # like active
    started: date
    cooling_off_until: date | None = None  # the last day; None: there is no cooling-off


class Invoice(Value):
    """What a customer was charged."""

    invoice: Name  # its number
    issued: date
    amount: Money
    currency: Currency
    what: Text = Field("", alias="for")
    cases: list[CaseInBrief] = []


class Case(Value):
    """A refund case, and what became of it."""

    case: Name  # its number
    status: Status
    invoice: Name
    amount: Money
    currency: Currency
    reason: Reason
    decided_by: date  # staff decide by then
    said_by_staff: Text = ""  # with the decision
    next_steps: Text = ""  # what the customer is told when it was opened


class Policy(Value):
    """The rules of refunds."""

    most_of_one_case: Money
    reasons: list[Reason]
    cooling_off_days: int
    decided_in_business_days: int
    paid_back_days_after_approval: Name  # like 7-10
    not_refundable: list[Text] = []
    notes: list[Text] = []


@dataclass(frozen=True)
class Wish:
    """What a customer wants back. Neither the invoice nor the currency has been looked at yet."""

    invoice: str
    amount: Decimal  # above 0, at most 1,000, two decimals
    reason: Reason
    currency: str = ""  # empty: not named
    description: str = ""  # in the customer's own words


class BillingSystem(ABC):
    """A system of billing, asked on behalf of one customer at a time.

    One object serves all threads of a process. `user_id` is never empty and comes from the client's
    key or session, never from what somebody wrote. What is another customer's does not exist.
    `seconds` is how long the answer is waited for. Every method may raise UnknownCustomer,
    LateSystem and BrokenSystem; whatever else it raises is a fault that the operator finds.
    """

    # True where opening a case changes Docent's own database and nothing else, so that it happens
    # in the transaction that writes the call down.
    is_here: ClassVar[bool] = False

    @abstractmethod
    def subscriptions(self, user_id: str, *, seconds: float) -> Sequence[Subscription]:
        """Return what the customer subscribed to, the newest first; none: an empty list."""

    @abstractmethod
    def invoices(self, user_id: str, *, seconds: float) -> Sequence[Invoice]:
        """Return the customer's invoices, the newest first. The first 24 are used."""

    @abstractmethod
    def open_case(self, user_id: str, wish: Wish, *, key: str, seconds: float) -> Case:
        """Open a refund case, once for a `key`. Raises RefusedRefund.

        `key` is 64 characters and the same whenever this case is asked for again, as after a crash
        or a time-out: then the case that was opened with it is returned, whatever the wish says.
        """

    @abstractmethod
    def case(self, user_id: str, number: str, *, seconds: float) -> Case | None:
        """Return a case of the customer by its number, as somebody wrote it; None if not theirs."""

    @abstractmethod
    def policy(self, *, seconds: float) -> Policy:
        """Return the rules of refunds, the same for every customer."""


def billing_system() -> BillingSystem:
    """Return the system that BILLING_SYSTEM names. Raises UnusableSystem."""
    return loaded(settings.BILLING_SYSTEM)


@cache
def loaded(path: str) -> BillingSystem:
    """Return an object of the class with this dotted path. Raises UnusableSystem."""
    try:
        kind = import_string(path)
    except (ImportError, ValueError) as error:  # ValueError: nothing before the first dot
        raise UnusableSystem(
            f"{path!r} cannot be imported: {error}; write the module and the class, "
            "like acme.AcmeBilling"
        ) from error
    if not (isinstance(kind, type) and issubclass(kind, BillingSystem)):
        raise UnusableSystem(f"{path} is no class derived from {__name__}.BillingSystem")
    if missing := ", ".join(sorted(kind.__abstractmethods__)):
        raise UnusableSystem(f"{path} lacks {missing}")
    return kind()
