"""The demonstration set: what it adds, and that it adds it once."""

import pytest
from django.core.management import call_command

from agents.billing import refunds
from agents.billing.models import Invoice, Plan

pytestmark = pytest.mark.django_db


def test_the_second_time_nothing_is_added_and_what_was_changed_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call_command("load_demo_billing")
    added = capsys.readouterr().out.splitlines()
    assert len(added) == 11
    assert "Added the plan M 100 GB, 45.00 PLN a month" in added
    Plan.objects.filter(code="M").update(price=50)
    call_command("load_demo_billing")
    assert capsys.readouterr().out == "Everything is there already.\n"
    assert Plan.objects.get(code="M").price == 50
    assert [each.number for each in refunds.invoices("u123")] == ["INV-20251001", "INV-20250901"]
    assert Invoice.objects.count() == 4
