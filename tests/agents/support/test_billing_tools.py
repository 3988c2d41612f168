"""Billing tools: for whom they work, what they refuse, and that a case is opened once."""

from decimal import Decimal
from typing import Any

import pytest

from agents.billing.models import RefundCase
from agents.billing.refunds import decide
from agents.models import ToolRun
from agents.names import Role
from agents.tools.tool import tools_of
from agents.tools.toolbox import Toolbox
from tests.agents.billing.accounts import account
from tests.agents.tools.bench import again, step_of
from tests.conftest import Begin

WISH: dict[str, Any] = {"invoice": "INV-u123", "amount": "20.50", "reason": "overcharge"}
TOOLS = [
    "get_subscription",
    "get_invoices",
    "open_refund_case",
    "get_refund_case",
    "get_refund_policy",
]


@pytest.fixture
def box(begin: Begin) -> Toolbox:
    """The tools of billing, for u123; there is also u456."""
    account("u123")
    account("u456")
    return toolbox(begin, "u123")


def result(run: ToolRun) -> Any:
    """Return what a call came to, which went well."""
    assert run.outcome == "ok", run.error
    return run.result


def toolbox(begin: Begin, user_id: str) -> Toolbox:
    """Return the toolbox of a step of billing for a user."""
    return Toolbox.of(step_of(begin(user_id=user_id), Role.BILLING))


def test_billing_has_these_tools_and_no_other_role_has_them() -> None:
    assert [tool.name for tool in tools_of(Role.BILLING)] == TOOLS
    others = {tool.name for role in Role if role != Role.BILLING for tool in tools_of(role)}
    assert others.isdisjoint(TOOLS)
    for tool in tools_of(Role.BILLING):
        assert not {"user", "user_id", "customer"} & set(tool.arguments.model_fields)


def test_what_is_looked_up_is_the_callers_own(box: Toolbox) -> None:
    (plan,) = result(box.call("get_subscription"))
    assert (plan["plan"], plan["price_a_month"], plan["currency"]) == ("M", "45.00", "PLN")
    assert plan["cooling_off_until"] == "2025-08-29"
    (invoice,) = result(box.call("get_invoices"))
    assert (invoice["invoice"], invoice["amount"], invoice["cases"]) == ("INV-u123", "45.00", [])
    policy = result(box.call("get_refund_policy"))
    assert policy["reasons"] == ["overcharge", "service_outage", "within_cooling_off", "other"]


def test_a_case_is_opened_and_found_with_what_staff_said(box: Toolbox) -> None:
    run = box.call("open_refund_case", **WISH)
    case = RefundCase.objects.get()
    assert (result(run)["case"], result(run)["amount"]) == (case.number, "20.50")
    decide(case.pk, approve=False, by=None, comment="The charge was right.")
    found = result(box.call("get_refund_case", case=case.number.lower()))
    assert (found["status"], found["said_by_staff"]) == ("rejected", "The charge was right.")
    assert result(box.call("get_invoices"))[0]["cases"] == [f"{case.number}, rejected"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"amount": "0"}, "above 0"),
        ({"amount": -1}, "above 0"),
        ({"amount": 1000.01}, "at most 1,000"),
        ({"amount": "1e9"}, "at most 1,000"),
        ({"amount": "1e1"}, "no exponent"),
        ({"amount": "NaN"}, "finite"),
        ({"amount": float("nan")}, "finite"),
        ({"amount": True}, "write an amount"),
        ({"amount": "a lot"}, "decimal"),
        ({"currency": "EUR"}, "in PLN"),
        ({"reason": "boredom"}, "overcharge"),
        ({"invoice": "INV-u456"}, "no invoice 'INV-u456'"),
        ({"invoice": "INV-9"}, "no invoice 'INV-9'"),
        ({"user_id": "u456"}, "user_id"),
    ],
)
def test_a_wish_that_may_not_be_is_refused_with_a_sentence_and_opens_nothing(
    box: Toolbox, changes: dict[str, Any], problem: str
) -> None:
    run = box.call("open_refund_case", **WISH | changes)
    assert (run.outcome, problem in run.error) == ("validation", True), run.error
    assert not RefundCase.objects.exists()


def test_an_amount_written_as_a_number_is_exact(box: Toolbox) -> None:
    box.call("open_refund_case", **WISH | {"amount": 0.1})
    assert RefundCase.objects.get().amount == Decimal("0.10")


def test_a_case_of_another_looks_like_one_that_does_not_exist(box: Toolbox, begin: Begin) -> None:
    case = result(box.call("open_refund_case", **WISH))["case"]
    other = toolbox(begin, "u456")
    refused = other.call("get_refund_case", case=case)
    unknown = other.call("get_refund_case", case="R99999")
    assert refused.outcome == unknown.outcome == "validation"
    assert refused.error.replace(case, "R99999") == unknown.error


@pytest.mark.parametrize("user_id", ["", "u999"])
def test_who_is_no_customer_is_told_so_by_every_tool_about_accounts(
    box: Toolbox, begin: Begin, user_id: str
) -> None:
    nobody = toolbox(begin, user_id)
    runs = [
        nobody.call("get_subscription"),
        nobody.call("get_invoices"),
        nobody.call("open_refund_case", **WISH),
        nobody.call("get_refund_case", case="R10001"),
    ]
    assert {run.outcome for run in runs} == {"validation"}
    assert all("no account here" in run.error for run in runs)
    assert nobody.call("get_refund_policy").outcome == "ok"


def test_a_step_that_is_done_again_opens_no_second_case(begin: Begin) -> None:
    account("u123")
    claim = step_of(begin(user_id="u123"), Role.BILLING)
    first = Toolbox.of(claim).call("open_refund_case", **WISH)
    second = Toolbox.of(again(claim)).call("open_refund_case", **WISH)
    assert result(first)["case"] == result(second)["case"]
    assert (RefundCase.objects.count(), ToolRun.objects.count()) == (1, 1)


def test_one_invoice_asked_for_twice_in_a_turn_comes_to_one_case(box: Toolbox) -> None:
    first = box.call("open_refund_case", **WISH)
    second = box.call("open_refund_case", **WISH | {"amount": "10.00"})
    assert second.repeats == first
    assert RefundCase.objects.get().amount == Decimal("20.50")


def test_the_next_turn_is_told_which_case_there_is(box: Toolbox, begin: Begin) -> None:
    case = result(box.call("open_refund_case", **WISH))["case"]
    refused = toolbox(begin, "u123").call("open_refund_case", **WISH)
    assert refused.outcome == "validation"
    assert case in refused.error
