"""Account: what the tools of billing say of a customer, and how that is told without a model."""

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from agents.models import ToolRun
from agents.support.dialogue.replies import REASONS
from agents.tools.tool import ToolOutcome
from agents.tools.toolbox import Toolbox
from agents.words import Phrase

OPENED, APPROVED, REJECTED = "opened", "approved", "rejected"
MOST_SHOWN = 6
TOLD_OF_CASE = {
    OPENED: Phrase.CASE_OPENED,
    APPROVED: Phrase.CASE_APPROVED,
    REJECTED: Phrase.CASE_REJECTED,
}


@dataclass(frozen=True)
class Invoice:
    """One invoice, with what became of each of its refund cases, by number."""

    number: str
    issued: str
    amount: Decimal
    currency: str
    cases: dict[str, str]

    @property
    def case(self) -> str:
        """The case that stands in the way of another one; empty: none does."""
        return next((number for number, status in self.cases.items() if status != REJECTED), "")

    def label(self, language: str) -> str:
        """Return what the button says that names it."""
        return Phrase.SUGGEST_INVOICE.in_language(
            language,
            invoice=self.number,
            issued=self.issued,
            amount=self.amount,
            currency=self.currency,
        )


class Account:
    """The account of the customer whose turn it is, looked up as far as it is needed."""

    def __init__(self, tools: Toolbox, language: str) -> None:
        self._tools, self._language = tools, language
        self.failures: list[ToolRun] = []

    @cached_property
    def _subscription(self) -> ToolRun:
        return self._called("get_subscription")

    @property
    def is_known(self) -> bool:
        """Whether whoever asks is a customer."""
        return self._subscription.outcome != ToolOutcome.VALIDATION

    @property
    def plans(self) -> list[dict[str, Any]]:
        """What the customer subscribed to, the newest first."""
        return self._subscription.result or []

    @cached_property
    def invoices(self) -> dict[str, Invoice]:
        """The invoices by number, the newest first."""
        rows = self._called("get_invoices").result or []
        return {row["invoice"]: _invoice(row) for row in rows}

    @cached_property
    def policy(self) -> dict[str, Any]:
        """The rules of refunds; empty: they could not be looked up."""
        return self._called("get_refund_policy").result or {}

    @property
    def refundable(self) -> list[Invoice]:
        """The invoices that no case stands in the way of."""
        return [invoice for invoice in self.invoices.values() if not invoice.case]

    @property
    def cases(self) -> dict[str, str]:
        """What became of each refund case, the newest first."""
        found = [pair for invoice in self.invoices.values() for pair in invoice.cases.items()]
        return dict(sorted(found, reverse=True))

    @property
    def currency(self) -> str:
        """What the newest plan is paid in, else the newest invoice; empty: there is neither."""
        newest = [plan["currency"] for plan in self.plans]
        return next(iter([*newest, *(each.currency for each in self.invoices.values())]), "")

    @property
    def cooling_off_until(self) -> str:
        """The last day of cooling-off of any plan, ISO 8601; empty: there is none."""
        return max((plan["cooling_off_until"] or "" for plan in self.plans), default="")

    def open_case(self, **wish: str) -> ToolRun:
        """Have a case opened."""
        return self._called("open_refund_case", **wish)

    def renewed(self) -> "Account":
        """Return the account as it is now."""
        return Account(self._tools, self._language)

    def _called(self, name: str, **arguments: str) -> ToolRun:
        run = self._tools.call(name, **arguments)
        if run.error_id:
            self.failures.append(run)
        return run

    def plan_lines(self) -> list[str]:
        """Tell the plans."""
        return [self._say(Phrase.YOUR_PLAN, **plan) for plan in self.plans[:MOST_SHOWN]]

    def invoice_lines(self, invoices: list[Invoice] | None = None) -> list[str]:
        """Tell the newest invoices, or those that are given."""
        shown = list(self.invoices.values()) if invoices is None else invoices
        return [
            self._say(Phrase.YOUR_INVOICE, invoice=each.number, **_figures(each))
            for each in shown[:MOST_SHOWN]
        ]

    def case_lines(self, numbers: list[str]) -> list[str]:
        """Tell what became of cases of the customer."""
        told = []
        for number in numbers[:MOST_SHOWN]:
            case = self._called("get_refund_case", case=number).result
            if not case:
                told.append(self._say(Phrase.NO_SUCH_CASE, case=number))
                continue
            told.append(self.case_line(case))
            if said := case.get("said_by_staff"):
                told.append(self._say(Phrase.STAFF_SAID, case=case["case"], comment=said))
        return told

    def case_line(self, case: dict[str, Any]) -> str:
        """Tell what became of a case, as the tools have it."""
        days = self.policy.get("paid_back_days_after_approval", "")
        return self._say(TOLD_OF_CASE[case["status"]], **case, days=days)

    def policy_lines(self) -> list[str]:
        """Tell the rules of refunds."""
        rules = self.policy
        if not rules:
            return []
        lines = [
            self._say(
                Phrase.POLICY_LIMIT, amount=rules["most_of_one_case"], currency=self.currency
            ).replace("  ", " "),
            self._say(Phrase.POLICY_REASONS, reasons="; ".join(self.reasons().values())),
            self._say(Phrase.POLICY_COOLING_OFF, days=rules["cooling_off_days"]),
            self.terms(),
        ]
        if items := "; ".join(rules["not_refundable"]):
            lines.append(self._say(Phrase.POLICY_NOT_REFUNDABLE, items=items))
        return lines

    def terms(self) -> str:
        """Tell by when a case is decided and the money is back."""
        return self._say(
            Phrase.POLICY_TERMS,
            days=self.policy.get("decided_in_business_days", ""),
            paid_back=self.policy.get("paid_back_days_after_approval", ""),
        )

    def reasons(self) -> dict[str, str]:
        """Return the reasons for a refund in plain words, by their codes."""
        codes = [code for code in REASONS if code in self.policy.get("reasons", [])]
        return {code: self._say(Phrase[f"REASON_{code.upper()}"]) for code in codes}

    def _say(self, phrase: Phrase, **values: object) -> str:
        return phrase.in_language(self._language, **values)


def _invoice(row: dict[str, Any]) -> Invoice:
    cases = (case.rpartition(", ") for case in row["cases"])
    return Invoice(
        row["invoice"],
        row["issued"],
        Decimal(row["amount"]),
        row["currency"],
        {number: status for number, _, status in cases},
    )


def _figures(invoice: Invoice) -> dict[str, object]:
    return {
        "issued": invoice.issued, "amount": invoice.amount, "currency": invoice.currency
    }  # fmt: skip
