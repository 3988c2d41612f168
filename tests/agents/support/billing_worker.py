"""Billing worker: work on one step of billing, in a process that is killed at a named moment.

`python -m tests.agents.support.billing_worker DATABASE ADDRESS`, with the moments of
tests/e2e/failpoints and the billing system of the environment.
"""

import sys

import django
from django.conf import settings

django.setup()

from agents.llm.requests import Choice  # noqa: E402
from agents.names import Role  # noqa: E402
from agents.steps import steps  # noqa: E402
from knowledge.providers import Provider  # noqa: E402


def main() -> None:
    """Do what is ready for billing, with the scripted model at an address."""
    database, address = sys.argv[1:]
    settings.DATABASES["default"]["NAME"] = database
    settings.PROVIDERS["scripted"] = Provider("scripted", address, "key")
    settings.MODELS[Role.BILLING] = Choice("fake@scripted", timeout=5.0)
    steps.perform_one_by_one(Role.BILLING, steps.run_agent)


if __name__ == "__main__":
    main()
