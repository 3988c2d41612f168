"""System: which classes may keep the customers, and what stops the start."""

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.billing.own_tables import OwnTables
from agents.billing.system import (
    BillingSystem,
    Invoice,
    UnusableSystem,
    billing_system,
    loaded,
)


class Half(BillingSystem):
    """A class that was not written to its end."""

    def policy(self, *, seconds: float) -> None:  # type: ignore[override]
        """Return nothing."""


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "'' cannot be imported"),
        ("acme", "'acme' cannot be imported"),
        (".Billing", "'.Billing' cannot be imported"),
        ("acme.Billing", "No module named 'acme'; write the module and the class, like acme.Acme"),
        ("agents.billing.own_tables.Nothing", "cannot be imported"),
        ("agents.billing.models.Invoice", "is no class derived from agents.billing.system.Billing"),
        ("agents.billing.own_tables.DECIDED", "is no class derived from"),
        (f"{__name__}.Half", "Half lacks case, invoices, open_case, subscriptions"),
        ("agents.billing.system.BillingSystem", "lacks case, invoices, open_case, policy, subscr"),
    ],
)
def test_what_is_no_system_is_refused_with_what_is_missing(path: str, says: str) -> None:
    with pytest.raises(UnusableSystem) as refused:
        loaded(path)
    assert says in str(refused.value)


@pytest.mark.parametrize("case", ["R1", "R1 opened", ", opened", "R1, lost"])
def test_what_became_of_the_case_of_an_invoice_is_said_in_one_way(case: str) -> None:
    values = {"invoice": "I-1", "issued": "2026-01-31", "amount": "45", "currency": "PLN"}
    assert Invoice.model_validate(values | {"cases": ["R-1, rejected"]}).cases == ["R-1, rejected"]
    with pytest.raises(ValidationError, match=r"cases\.0"):
        Invoice.model_validate(values | {"cases": [case]})


def test_docents_own_tables_are_the_system_where_none_is_named() -> None:
    assert isinstance(billing_system(), OwnTables)
    assert billing_system() is billing_system()


def test_a_system_that_cannot_be_used_stops_the_start_with_a_sentence() -> None:
    answer = subprocess.run(
        [sys.executable, "manage.py", "tools"],
        env=os.environ | {"BILLING_SYSTEM": "acme.Billing"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        "Docent cannot start: a setting is wrong. BILLING_SYSTEM: 'acme.Billing' cannot be imported"
    )


def test_money_is_exact_and_has_two_decimals_however_it_was_written() -> None:
    values = {"invoice": "I-1", "issued": "2026-01-31", "currency": "PLN", "for": "M"}
    for amount in ("45", 45, 45.0, Decimal("45.00")):
        invoice = Invoice.model_validate(values | {"amount": amount})
        assert invoice.model_dump(mode="json", by_alias=True)["amount"] == "45.00"
    for amount in ("NaN", "1e9999", "45.001", "a lot"):
        with pytest.raises(ValidationError, match="amount"):
            Invoice.model_validate(values | {"amount": amount})
