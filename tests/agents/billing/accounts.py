"""Accounts: customers with what they pay for, as staff would have entered them."""

from datetime import date
from decimal import Decimal

from agents.billing.models import Customer, Invoice, Plan, Subscription


def account(
    user_id: str = "u123", *, started: date = date(2025, 8, 15), amount: str = "45.00"
) -> Invoice:
    """Return the one invoice of a new customer, INV-<user id>."""
    plan, _ = Plan.objects.get_or_create(
        code="M",
        defaults={
            "name": "M 100 GB", "price": Decimal(45), "currency": "PLN", "country": "PL"
        },
    )  # fmt: skip
    customer = Customer.objects.create(user_id=user_id)
    subscription = Subscription.objects.create(customer=customer, plan=plan, started=started)
    return Invoice.objects.create(
        number=f"INV-{user_id}", subscription=subscription, amount=amount, issued=date(2025, 10, 1)
    )
