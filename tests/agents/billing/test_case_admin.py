"""Admin of billing: staff decide and comment, history stays, and nothing else can be changed."""

from decimal import Decimal
from http import HTTPStatus

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agents.billing.models import RefundCase
from agents.billing.refunds import decide, open_case
from tests.agents.billing.accounts import account

pytestmark = pytest.mark.django_db


@pytest.fixture
def case() -> RefundCase:
    """An open case."""
    account()
    return open_case(
        "u123", invoice_number="INV-u123", amount=Decimal("20.5"), reason="other", description="Why"
    )


@pytest.fixture
def staff(client: Client) -> Client:
    """A browser whose user may do everything."""
    client.force_login(User.objects.create_superuser("root"))
    return client


def address(case: RefundCase) -> str:
    return reverse("admin:billing_refundcase_change", args=[case.pk])


def do(staff: Client, case: RefundCase, action: str, comment: str = "") -> str:
    """Choose an action for the case; return the page that follows."""
    form = {"action": action, "comment": comment}
    form |= {"events-TOTAL_FORMS": "0", "events-INITIAL_FORMS": "0"}
    return staff.post(address(case), form, follow=True).content.decode()


def events(case: RefundCase) -> list[tuple[str, str, str]]:
    return [(each.kind, str(each.by or ""), each.comment) for each in case.events.order_by("pk")]


def test_staff_comment_and_approve_and_the_history_says_who(
    staff: Client, case: RefundCase
) -> None:
    do(staff, case, "comment", "I ask the network team.")
    do(staff, case, "approve")
    case.refresh_from_db()
    assert case.status == "approved"
    assert events(case) == [
        ("opened", "", "Why"),
        ("commented", "root", "I ask the network team."),
        ("approved", "root", ""),
    ]
    page = staff.get(address(case)).content.decode()
    assert "I ask the network team." in page


def test_a_rejection_needs_a_reason_and_a_comment_words(staff: Client, case: RefundCase) -> None:
    for action in ("reject", "comment"):
        assert "Write what is to be said." in do(staff, case, action, " ")
    assert len(events(case)) == 1
    do(staff, case, "reject", "The charge was right.")
    case.refresh_from_db()
    assert case.status == "rejected"


def test_a_case_that_is_decided_is_not_decided_again(staff: Client, case: RefundCase) -> None:
    decide(case.pk, approve=True, by=None)
    assert "is approved already" in do(staff, case, "reject", "No.")
    case.refresh_from_db()
    assert case.status == "approved"


def test_nothing_else_of_a_case_can_be_changed(staff: Client, case: RefundCase) -> None:
    staff.post(
        address(case),
        {
            "action": "comment", "comment": "x", "amount": "900", "status": "approved",
            "events-TOTAL_FORMS": "0", "events-INITIAL_FORMS": "0",
        },
    )  # fmt: skip
    case.refresh_from_db()
    assert (case.amount, case.status) == (Decimal("20.50"), "opened")
    for page in ("delete", "change"):
        answer = staff.post(reverse(f"admin:billing_refundcase_{page}", args=[case.pk]), {})
        assert (answer.status_code == HTTPStatus.FORBIDDEN) == (page == "delete")
    assert staff.get(reverse("admin:billing_refundcase_add")).status_code == HTTPStatus.FORBIDDEN


def test_who_may_only_look_decides_nothing(client: Client, case: RefundCase) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_refundcase"))
    client.force_login(reader)
    page = client.get(address(case)).content.decode()
    assert case.number in page
    assert 'name="action"' not in page
    assert client.post(address(case), {"action": "approve"}).status_code == HTTPStatus.FORBIDDEN


def test_a_case_is_found_by_its_number(staff: Client, case: RefundCase) -> None:
    listed = reverse("admin:billing_refundcase_changelist")
    assert "INV-u123" in staff.get(listed, {"q": case.number}).content.decode()
    assert "INV-u123" not in staff.get(listed, {"q": "R99999"}).content.decode()


def test_what_a_case_relies_on_stays_as_it_was(staff: Client, case: RefundCase) -> None:
    invoice = case.invoice
    for name, row, field in [
        ("invoice", invoice, "amount"),
        ("subscription", invoice.subscription, "plan"),
        ("plan", invoice.subscription.plan, "currency"),
        ("customer", invoice.subscription.customer, ""),
    ]:
        page = staff.get(reverse(f"admin:billing_{name}_change", args=[row.pk]))
        assert page.status_code == HTTPStatus.OK
        assert not field or f'name="{field}"' not in page.content.decode()
        assert staff.get(reverse(f"admin:billing_{name}_changelist")).status_code == HTTPStatus.OK
