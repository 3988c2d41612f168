"""Billing app."""

import sys

from django.apps import AppConfig

from agents.billing.system import UnusableSystem, billing_system


class BillingConfig(AppConfig):
    """The Django app of customers, plans, invoices and refund cases."""

    name = "agents.billing"
    label = "billing"

    def ready(self) -> None:
        """Stop the start where the system that BILLING_SYSTEM names cannot be used."""
        try:
            billing_system()
        except UnusableSystem as error:
            sys.exit(f"Docent cannot start: a setting is wrong. BILLING_SYSTEM: {error}.")
