"""Models of billing: customers, what they subscribed to and were charged, and refund cases."""

import re
from datetime import date
from decimal import Decimal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.utils.timezone import localdate, now

from agents.billing.business_days import has_calendar

# What one case may be about, in the currency of the plan.
MOST_REFUNDED = Decimal(1000)
CASE_NUMBER = re.compile(r"R([1-9][0-9]{4,17})", re.ASCII)


class Currency(RegexValidator):
    """A code of ISO 4217, like PLN."""

    regex = r"^[A-Z]{3}\Z"
    message = "Write three capital letters, like PLN."


def known_calendar(country: str) -> None:
    """Refuse a country whose public holidays are not known. Raises ValidationError."""
    if not has_calendar(country):
        raise ValidationError(
            f"No public holidays are known of {country!r}; write a code of two letters, like PL."
        )


def money() -> models.DecimalField:
    """Return a field for an exact amount with two decimals."""
    return models.DecimalField(
        max_digits=10, decimal_places=2, validators=[MinValueValidator(Decimal("0.01"))]
    )


class Customer(models.Model):
    """Somebody who pays. Known by what the client with the key says for whom it asks."""

    user_id = models.CharField(
        max_length=128, unique=True, help_text="as clients of the API send it as user_id"
    )
    name = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("user_id",)

    def __str__(self) -> str:
        return f"{self.name} ({self.user_id})" if self.name else self.user_id


class Plan(models.Model):
    """What can be subscribed to."""

    code = models.CharField(max_length=32, unique=True)
    name = models.CharField(max_length=200)
    price = money()  # a month
    currency = models.CharField(max_length=3, validators=[Currency()], help_text="like PLN")
    country = models.CharField(
        max_length=2,
        validators=[known_calendar],
        help_text="whose public holidays are no business days, like PL",
    )

    class Meta:
        ordering = ("code",)

    def __str__(self) -> str:
        return f"{self.name}, {self.price} {self.currency} a month"


class Subscription(models.Model):
    """A plan that a customer has, or had."""

    class Status(models.TextChoices):
        """Whether it goes on."""

        ACTIVE = "active"
        SUSPENDED = "suspended"
        CANCELLED = "cancelled"

    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="subscriptions")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="subscriptions")
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    started = models.DateField()  # the days of cooling-off begin with it

    class Meta:
        ordering = ("-started",)

    def __str__(self) -> str:
        return f"{self.customer.user_id}: {self.plan.code} since {self.started}"


class Invoice(models.Model):
    """What was charged for a subscription, in the currency of its plan."""

    number = models.CharField(max_length=64, unique=True)
    subscription = models.ForeignKey(
        Subscription, on_delete=models.PROTECT, related_name="invoices"
    )
    amount = money()
    issued = models.DateField()
    what = models.CharField("for what", max_length=200, blank=True)

    class Meta:
        ordering = ("-issued", "number")
        constraints = (
            models.CheckConstraint(condition=Q(amount__gt=0), name="invoice_of_some_amount"),
        )

    def __str__(self) -> str:
        return self.number


class RefundCase(models.Model):
    """A wish for money of an invoice back. Its number is R and the key: R10001 is the first."""

    class Reason(models.TextChoices):
        """Why it is wished for."""

        OVERCHARGE = "overcharge"
        SERVICE_OUTAGE = "service_outage"
        WITHIN_COOLING_OFF = "within_cooling_off"
        OTHER = "other"

    class Status(models.TextChoices):
        """What became of it."""

        OPENED = "opened"
        APPROVED = "approved"
        REJECTED = "rejected"

    invoice = models.ForeignKey(
        Invoice, on_delete=models.PROTECT, related_name="cases", db_index=False
    )
    reason = models.CharField(max_length=20, choices=Reason)
    amount = money()
    currency = models.CharField(max_length=3)
    description = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.OPENED)
    due = models.DateField()  # decided by then
    opened = models.DateTimeField(default=now)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            # What was rejected may be asked for once more.
            models.UniqueConstraint(
                fields=("invoice",),
                condition=~Q(status="rejected"),
                name="refund_once_for_an_invoice",
            ),
            models.CheckConstraint(
                condition=Q(amount__gt=0, amount__lte=MOST_REFUNDED), name="refund_within_limits"
            ),
        )
        indexes = (models.Index(fields=("invoice",), name="refund_case_by_invoice"),)

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """What the case is called towards the customer."""
        return f"R{self.pk}" if self.pk else "a new case"

    @property
    def is_late(self) -> bool:
        """Whether it should have been decided by now."""
        return self.status == self.Status.OPENED and self.due < localdate()


class CaseEvent(models.Model):
    """One thing that happened to a refund case. None is ever changed."""

    class Kind(models.TextChoices):
        """What happened."""

        OPENED = "opened"
        APPROVED = "approved"
        REJECTED = "rejected"
        COMMENTED = "commented"
        TOLD = "told", "Told the customer"

    case = models.ForeignKey(RefundCase, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=10, choices=Kind)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, db_index=False
    )  # None: the customer
    comment = models.TextField(blank=True)
    at = models.DateTimeField(default=now)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.case.number} {self.kind}"


def case_key(number: str) -> int | None:
    """Return the key of a case by its number, however it is spelt; None for what is no number."""
    found = CASE_NUMBER.fullmatch(number.strip().upper())
    return int(found[1]) if found else None


def today() -> date:
    """Return the day by which terms are counted."""
    return localdate()
