"""Billing app."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """The Django app of customers, plans, invoices and refund cases."""

    name = "agents.billing"
    label = "billing"
