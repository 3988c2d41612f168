"""load_demo_billing: plans, two customers and their invoices, to try billing with."""

from datetime import date
from decimal import Decimal
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models import Model

from agents.billing.models import Customer, Invoice, Plan, Subscription

PLANS = {"S": ("S 50 GB", "35.00"), "M": ("M 100 GB", "45.00"), "L": ("L Unlimited", "65.00")}
# Of each user id: the plan, its first day, and the months of the invoices.
CUSTOMERS = {
    "u123": ("M", date(2025, 8, 15), ("202509", "202510")),
    "u456": ("L", date(2025, 6, 1), ("202509", "202510")),
}


class Command(BaseCommand):
    """`manage.py load_demo_billing`."""

    help = "Add plans S, M and L and the customers u123 and u456; what is there stays as it is."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        """Add what is missing, and say what that was."""
        made = [row for row, is_new in _rows() if is_new]
        for row in made:
            self.stdout.write(f"Added the {row._meta.verbose_name} {row}")
        if not made:
            self.stdout.write("Everything is there already.")


def _rows() -> list[tuple[Model, bool]]:
    rows: list[tuple[Model, bool]] = []
    plans: dict[str, Plan] = {}
    for code, (name, price) in PLANS.items():
        values = {"name": name, "price": Decimal(price), "currency": "PLN", "country": "PL"}
        plans[code], is_new = Plan.objects.get_or_create(code=code, defaults=values)
        rows.append((plans[code], is_new))
    for user_id, (code, started, months) in CUSTOMERS.items():
        customer, is_new = Customer.objects.get_or_create(user_id=user_id)
        rows.append((customer, is_new))
        subscription, is_new = Subscription.objects.get_or_create(
            customer=customer, plan=plans[code], started=started
        )
        rows.append((subscription, is_new))
        rows += [_invoice(subscription, month) for month in months]
    return rows


def _invoice(subscription: Subscription, month: str) -> tuple[Model, bool]:
    """Return an invoice of a month; the first customer's are named as if there were no other."""
    user_id = subscription.customer.user_id
    number = f"INV-{month}01" if user_id == "u123" else f"INV-{month}02"
    issued = date(int(month[:4]), int(month[4:]), int(number[-2:]))
    values = {
        "subscription": subscription,
        "amount": subscription.plan.price,
        "issued": issued,
        "what": f"{subscription.plan.name}, {month[:4]}-{month[4:]}",
    }
    return Invoice.objects.get_or_create(number=number, defaults=values)
