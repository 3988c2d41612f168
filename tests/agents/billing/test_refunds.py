"""Refunds: which are taken, which are refused with a sentence, and that each comes once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from agents.billing import refunds
from agents.billing.business_days import business_day_after
from agents.billing.models import Plan, RefundCase, case_key
from agents.billing.refunds import comment_on, decide, open_case
from agents.billing.system import RefusedRefund
from tests.agents.billing.accounts import account

pytestmark = pytest.mark.django_db
TODAY = date(2025, 10, 30)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[date], None]:
    """A day that stands still, and what moves it."""

    def move(day: date) -> None:
        monkeypatch.setattr(refunds, "today", lambda: day)

    move(TODAY)
    return move


def wish(user_id: str = "u123", **changes: Any) -> RefundCase:
    """Open a case for the customer's invoice, with what a test changes."""
    values: dict[str, Any] = {
        "invoice_number": f"INV-{user_id}",
        "amount": Decimal("20.50"),
        "reason": "overcharge",
    }
    return open_case(user_id, **values | changes)


def test_a_case_has_a_number_the_currency_of_the_plan_and_a_day_by_which_it_is_decided() -> None:
    account()
    made = wish(description="Charged twice.")
    made.refresh_from_db()
    assert (made.amount, made.currency, made.status) == (Decimal("20.50"), "PLN", "opened")
    # Saturday and Sunday and All Saints' Day lie between.
    assert made.due == date(2025, 11, 6)
    assert made.pk > 10000
    assert made.number == f"R{made.pk}"
    assert refunds.case("u123", f" r{made.pk} ") == made
    (event,) = made.events.all()
    assert (event.kind, event.by, event.comment) == ("opened", None, "Charged twice.")


def test_the_first_number_is_10001() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seqstart FROM pg_sequence WHERE seqrelid = "
            "pg_get_serial_sequence('billing_refundcase', 'id')::regclass"
        )
        assert cursor.fetchone() == (10001,)


@pytest.mark.parametrize(
    ("amount", "problem"),
    [
        ("0", "above 0 and at most 1,000"),
        ("-1", "above 0 and at most 1,000"),
        ("1000.01", "above 0 and at most 1,000"),
        ("1e9", "above 0 and at most 1,000"),
        ("1e2", "no exponent"),
        ("0.001", "two decimals"),
        ("NaN", "no number"),
        ("sNaN", "no number"),
        ("-Infinity", "no number"),
        ("45.01", "is of 45.00 PLN; no more"),
    ],
)
def test_an_amount_that_may_not_be_refunded_is_refused_with_a_sentence(
    amount: str, problem: str
) -> None:
    account()
    with pytest.raises(RefusedRefund, match=problem):
        wish(amount=Decimal(amount))
    assert not RefundCase.objects.exists()


def test_the_limits_themselves_are_allowed() -> None:
    account(amount="2000.00")
    account("u456")
    assert wish(amount=Decimal(1000)).amount == 1000
    assert wish("u456", amount=Decimal("0.01")).amount == Decimal("0.01")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"reason": "boredom"}, "'boredom' is no reason for a refund; allowed: overcharge, "),
        ({"currency": "eur"}, "is in PLN; nothing is refunded in EUR"),
        ({"invoice_number": "INV-9"}, "The customer has no invoice 'INV-9'."),
        ({"invoice_number": "INV-u456"}, "The customer has no invoice 'INV-u456'."),
        ({"invoice_number": ""}, "The customer has no invoice ''."),
    ],
)
def test_a_wish_that_does_not_fit_is_refused_and_anothers_invoice_is_none_at_all(
    changes: dict[str, str], problem: str
) -> None:
    account()
    account("u456")
    with pytest.raises(RefusedRefund, match=problem):
        wish(**changes)
    assert not RefundCase.objects.exists()


@pytest.mark.parametrize("user_id", ["", "u999"])
def test_who_is_no_customer_has_nothing(user_id: str) -> None:
    made = wish(account("u123").subscription.customer.user_id)
    assert refunds.customer(user_id) is None
    assert not refunds.subscriptions(user_id).exists()
    assert not refunds.invoices(user_id).exists()
    assert refunds.case(user_id, made.number) is None
    with pytest.raises(RefusedRefund, match="no invoice"):
        wish(user_id, invoice_number="INV-u123")


def test_a_case_of_another_looks_like_one_that_does_not_exist() -> None:
    account()
    account("u456")
    made = wish()
    assert refunds.case("u456", made.number) is None
    assert refunds.case("u456", "R99999") is None


@pytest.mark.parametrize("day", ["2025-08-29", "2025-08-30"])
def test_cooling_off_lasts_for_14_days_after_the_beginning(
    day: str, clock: Callable[[date], None]
) -> None:
    account(started=date(2025, 8, 15))
    clock(date.fromisoformat(day))
    if day == "2025-08-29":
        assert wish(reason="within_cooling_off").reason == "within_cooling_off"
        return
    with pytest.raises(RefusedRefund, match="14 days of cooling-off ended on 2025-08-29"):
        wish(reason="within_cooling_off")
    assert wish(reason="other").reason == "other"


def test_business_days_leave_out_weekends_and_the_holidays_of_the_country() -> None:
    # Christmas Eve is a holiday in Poland since 2025, and none in Germany.
    assert business_day_after(date(2025, 12, 23), 1, "PL") == date(2025, 12, 29)
    assert business_day_after(date(2025, 12, 23), 1, "DE") == date(2025, 12, 24)


def test_a_plan_of_a_country_without_calendar_or_of_an_odd_currency_is_refused() -> None:
    plan = Plan(code="X", name="X", price=1, currency="zł", country="XX")
    with pytest.raises(ValidationError) as refused:
        plan.full_clean()
    assert set(refused.value.message_dict) == {"currency", "country"}


def test_an_invoice_is_refunded_once_unless_the_case_was_rejected() -> None:
    account()
    first = wish()
    with pytest.raises(RefusedRefund, match=f"has the case {first.number} already"):
        wish(amount=Decimal("1.00"))
    decide(first.pk, approve=False, by=None, comment="The charge was right.")
    second = wish()
    decide(second.pk, approve=True, by=None)
    with pytest.raises(RefusedRefund, match=f"has the case {second.number} already"):
        wish()


def test_the_database_itself_refuses_a_second_case_and_amounts_beyond_the_limits() -> None:
    invoice = account()
    values: dict[str, Any] = {"invoice": invoice, "reason": "other", "due": TODAY}
    for amount in ("0", "-1", "1000.01"):
        with pytest.raises(IntegrityError, match="refund_within_limits"), transaction.atomic():
            RefundCase.objects.create(amount=amount, **values)
    RefundCase.objects.create(amount="1", **values)
    with pytest.raises(IntegrityError, match="refund_once_for_an_invoice"), transaction.atomic():
        RefundCase.objects.create(amount="1", **values)


@pytest.mark.django_db(transaction=True)
def test_two_sessions_at_once_get_one_case() -> None:
    account()
    both = Barrier(2)

    def session(_: int) -> str:
        both.wait(10)
        try:
            return wish().number
        except RefusedRefund as refusal:
            return str(refusal)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(session, range(2)), key=len)
    (case,) = RefundCase.objects.all()
    assert said[0] == case.number
    assert "already" in said[1]


def test_a_case_is_decided_once_and_its_history_says_by_whom() -> None:
    account()
    made, staff = wish(), User.objects.create_user("ada")
    with pytest.raises(RefusedRefund, match="Say why"):
        decide(made.pk, approve=False, by=staff, comment=" ")
    comment_on(made.pk, by=staff, comment="I look at it.")
    decide(made.pk, approve=True, by=staff)
    with pytest.raises(RefusedRefund, match="is approved already"):
        decide(made.pk, approve=False, by=staff, comment="No.")
    events = [(each.kind, each.by, each.comment) for each in made.events.all()]
    assert events == [
        ("opened", None, ""),
        ("commented", staff, "I look at it."),
        ("approved", staff, ""),
    ]


@pytest.mark.parametrize(
    ("number", "key"),
    [("R10001", 10001), (" r10001 ", 10001), ("10001", None), ("R1", None), ("R" + "9" * 30, None)],
)
def test_a_number_of_a_case_is_read_however_it_is_spelt(number: str, key: int | None) -> None:
    assert case_key(number) == key
