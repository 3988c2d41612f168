"""Other system: the tools of billing in front of a company's own, which is asked over the network.

It is asked without a transaction, on behalf of nobody but the caller, and opens a case once.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from agents import envelopes
from agents.billing.models import RefundCase
from agents.billing.system import (
    BillingSystem,
    BrokenSystem,
    Case,
    Invoice,
    LateSystem,
    Policy,
    RefusedRefund,
    Subscription,
    UnknownCustomer,
    Wish,
    billing_system,
    loaded,
)
from agents.models import Fault, ToolRun
from agents.names import Role
from agents.steps.records import Claim
from agents.steps.step_lease import LapsedError
from agents.tools import toolbox as toolbox_module
from agents.tools.tool import TOOLS, Effect
from agents.tools.toolbox import Toolbox
from tests.agents.support.talk import Talk
from tests.agents.tools.bench import again, step_of
from tests.conftest import Begin

WISH: dict[str, Any] = {"invoice": "A-1", "amount": "20.50", "reason": "overcharge"}


@dataclass
class Company(BillingSystem):
    """A company with one customer, u123, who has one invoice, A-1."""

    asked: list[tuple[str, ...]] = field(default_factory=list)
    connections: list[bool] = field(default_factory=list)
    cases: dict[str, Case] = field(default_factory=dict)  # by key
    failures: list[Exception] = field(default_factory=list)  # after the work was done, one each

    def noted(self, *asked: str) -> None:
        """Note what was asked; refuse whoever is no customer."""
        self.asked.append(asked)
        self.connections.append(connection.connection is not None)
        if asked[1] != "u123":
            raise UnknownCustomer

    def subscriptions(self, user_id: str, *, seconds: float) -> Sequence[Subscription]:
        """Return none, or fail."""
        self.noted("subscriptions", user_id)
        if self.failures:
            raise self.failures.pop(0)
        return []

    def invoices(self, user_id: str, *, seconds: float) -> Sequence[Invoice]:
        """Return far too many."""
        self.noted("invoices", user_id)
        values = {"issued": date(2026, 1, 31), "amount": "45", "currency": "PLN"}
        return [Invoice(invoice=f"A-{place}", **values) for place in range(1, 100)]

    def open_case(self, user_id: str, wish: Wish, *, key: str, seconds: float) -> Case:
        """Open one case for a key."""
        self.noted("open_case", user_id, key)
        assert 0 < seconds <= 5
        if wish.invoice != "A-1":
            raise RefusedRefund("You have no such invoice.")
        made = Case(
            case=f"ACME-{len(self.cases) + 1}",
            status="opened",
            invoice=wish.invoice,
            amount=wish.amount,
            currency="PLN",
            reason=wish.reason,
            decided_by=date(2026, 2, 6),
        )
        made = self.cases.setdefault(key, made)
        if self.failures:
            raise self.failures.pop(0)
        return made

    def case(self, user_id: str, number: str, *, seconds: float) -> Case | None:
        """Return a case by its number."""
        self.noted("case", user_id, number)
        return next((each for each in self.cases.values() if each.case == number), None)

    def policy(self, *, seconds: float) -> Policy:
        """Return rules of its own."""
        return Policy(
            most_of_one_case="100",
            reasons=["overcharge"],
            cooling_off_days=7,
            decided_in_business_days=2,
            paid_back_days_after_approval="3",
        )


@pytest.fixture
def company(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Company:
    """The company whose system BILLING_SYSTEM names; nobody waits between attempts."""
    monkeypatch.setattr(toolbox_module, "sleep", lambda seconds: None)
    settings.BILLING_SYSTEM = f"{__name__}.Company"
    loaded.cache_clear()
    system = billing_system()
    assert isinstance(system, Company)
    return system


@pytest.fixture
def claim(begin: Begin, company: Company) -> Claim:
    """A step of billing for the customer."""
    return step_of(begin(user_id="u123"), Role.BILLING)


@pytest.fixture
def box(claim: Claim) -> Toolbox:
    """The toolbox of that step."""
    return Toolbox.of(claim)


def result(run: ToolRun) -> Any:
    """Return what a call came to, which went well."""
    assert run.outcome == "ok", run.error
    return run.result


def test_every_tool_shows_what_the_company_says(box: Toolbox, company: Company) -> None:
    assert result(box.call("get_subscription")) == []
    invoices = result(box.call("get_invoices"))
    assert len(invoices) == 24
    assert invoices[0] == {
        "invoice": "A-1", "issued": "2026-01-31", "amount": "45.00", "currency": "PLN", "for": "",
        "cases": [],
    }  # fmt: skip
    opened = result(box.call("open_refund_case", **WISH))
    assert (opened["case"], opened["amount"], opened["decided_by"]) == (
        "ACME-1", "20.50", "2026-02-06",
    )  # fmt: skip
    assert result(box.call("get_refund_case", case="ACME-1")) == opened
    assert box.call("get_refund_case", case="R10001").error == "The customer has no case 'R10001'."
    assert result(box.call("get_refund_policy"))["cooling_off_days"] == 7
    assert not RefundCase.objects.exists()


def test_the_class_in_the_documentation_works_as_it_stands_there() -> None:
    page = (Path(__file__).parents[3] / "docs/support.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 our own page
    acme: BillingSystem = names["AcmeBilling"]()
    (invoice,) = acme.invoices("u123", seconds=5)
    assert acme.subscriptions("u123", seconds=5)[0].currency == "PLN"
    wish = Wish(invoice.invoice, invoice.amount, "overcharge")
    case = acme.open_case("u123", wish, key="k", seconds=5)
    assert acme.open_case("u123", wish, key="k", seconds=5) == case
    assert (acme.case("u123", "a1", seconds=5), acme.case("u456", "A1", seconds=5)) == (case, None)
    assert acme.policy(seconds=5).cooling_off_days == 14
    with pytest.raises(UnknownCustomer):
        acme.invoices("u999", seconds=5)


def test_no_connection_is_held_while_the_company_is_asked(box: Toolbox, company: Company) -> None:
    box.call("get_invoices")
    box.call("open_refund_case", **WISH)
    assert company.connections == [False, False]
    assert TOOLS["open_refund_case"].effect is Effect.ELSEWHERE


def test_the_company_is_asked_for_the_caller_and_for_nobody_the_text_names(
    begin: Begin, box: Toolbox, company: Company
) -> None:
    box.call("get_invoices", user_id="u456")
    box.call("open_refund_case", **WISH | {"user_id": "u456"})
    assert company.asked == []
    for user_id in ("", "u456"):
        other = Toolbox.of(step_of(begin(user_id=user_id), Role.BILLING))
        assert "no account here" in other.call("get_invoices").error
        assert "no account here" in other.call("open_refund_case", **WISH).error
    assert {user_id for _, user_id, *_ in company.asked} == {"u456"}
    assert not company.cases


@pytest.mark.parametrize("amount", ["0", "-1", "1000.01", "1e1", "0.001"])
def test_an_amount_beyond_docents_own_limits_never_reaches_the_company(
    box: Toolbox, company: Company, amount: str
) -> None:
    assert box.call("open_refund_case", **WISH | {"amount": amount}).outcome == "validation"
    assert company.asked == []


def test_a_refusal_is_said_as_a_sentence_and_is_no_fault(box: Toolbox, company: Company) -> None:
    run = box.call("open_refund_case", **WISH | {"invoice": "B-2"})
    assert (run.outcome, run.error) == ("validation", "You have no such invoice.")
    assert not Fault.objects.exists()


def test_a_case_whose_worker_died_before_it_was_written_down_is_found_by_its_key(
    claim: Claim, box: Toolbox, company: Company
) -> None:
    first = result(box.call("open_refund_case", **WISH))
    ToolRun.objects.all().delete()
    second = result(Toolbox.of(again(claim)).call("open_refund_case", **WISH))
    assert second == first
    (_, _, before), (_, _, after) = company.asked
    assert before == after != ""
    assert len(company.cases) == 1


def test_a_case_of_which_nobody_heard_is_had_by_calling_again(
    box: Toolbox, company: Company
) -> None:
    company.failures = [BrokenSystem("POST /refund-cases: the connection was reset")]
    lost = box.call("open_refund_case", **WISH)
    assert (lost.outcome, lost.attempts) == ("execution", 1)
    assert "Whether it had its effect is not known" in lost.error
    assert "reset" not in lost.error
    assert "reset" in Fault.objects.get().summary
    found = box.call("open_refund_case", **WISH | {"description": "Charged twice."})
    assert result(found)["case"] == "ACME-1"
    assert len(company.cases) == 1
    assert [run.tool for run in box.effects()] == ["open_refund_case"]


def test_a_company_that_says_itself_that_it_is_late_leaves_no_thread_behind(
    box: Toolbox, company: Company
) -> None:
    company.failures = [LateSystem("GET /subscriptions"), LateSystem("GET /subscriptions")]
    run = box.call("get_subscription")
    assert (run.outcome, run.attempts) == ("timeout", 2)


def test_a_turn_that_was_cancelled_asks_for_no_case(
    claim: Claim, box: Toolbox, company: Company
) -> None:
    envelopes.cancel(claim.envelope_id)
    with pytest.raises(LapsedError):
        box.call("open_refund_case", **WISH)
    assert company.asked == []


def test_two_workers_at_one_step_come_to_one_case(claim: Claim, company: Company) -> None:
    """The lease says who may; without it, the key still does."""
    boxes = [Toolbox.of(claim), Toolbox.of(claim)]
    for box in boxes:
        box.token = None
    threads = [
        threading.Thread(target=box.call, args=("open_refund_case",), kwargs=WISH) for box in boxes
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(company.cases) == ToolRun.objects.count() == 1
    assert boxes[0].runs == boxes[1].runs


def test_without_a_model_the_dialogue_goes_by_what_the_company_says(
    begin: Begin, company: Company
) -> None:
    talk = Talk(begin)
    assert "in PLN" in talk.say("I want a refund for a1")
    assert talk.actions == ["45.00 PLN", "I was charged too much", "No, leave it"]
    assert "What is the reason?" in talk.say("service outage, 45 PLN")
    assert "I was charged too much" in talk.say("overcharge")
    assert "Refund case ACME-1 is open: 45.00 PLN of invoice A-1" in talk.say("yes")
    assert "2 business days" in talk.writes["response"]


def test_a_yes_of_which_nobody_heard_is_asked_for_again(
    begin: Begin, company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(begin)
    talk.say("I want a refund for A-1: overcharge, 45 PLN")
    monkeypatch.setattr(company, "subscriptions", lambda user_id, *, seconds: [])
    company.failures = [BrokenSystem("POST /refund-cases: the connection was reset")]
    assert "not known whether" in talk.say("yes")
    assert Fault.objects.get().code in talk.writes["response"]
    assert (talk.form or {})["invoice"] == "A-1"
    assert "Shall I open a refund case?" in talk.say("yes")
