"""Refund form: what a customer wants back, filled in over messages until a yes opens a case.

The rules are those of the tool that opens cases. They are looked at before, so that the customer is
told in their language what does not go, and asked only about what does.
"""

from dataclasses import dataclass, field
from decimal import Decimal

from agents.attributes import RefundForm
from agents.support.dialogue.account import MOST_SHOWN, Account, Invoice
from agents.support.dialogue.utterance import Utterance
from agents.tools.tool import ToolOutcome
from agents.words import Phrase

# So many turns on something else, and the form is put away.
MOST_BESIDE = 3
LONGEST_DESCRIPTION = 1000
DECIMALS = 2


def left_alone(form: RefundForm) -> RefundForm | None:
    """Return a form after a turn that was about something else; None: after so many it is closed.

    A yes does not open a case any more before the form was shown again.
    """
    if form.turns_beside + 1 >= MOST_BESIDE:
        return None
    return form.model_copy(update={"is_shown": False, "turns_beside": form.turns_beside + 1})


@dataclass
class Told:
    """What is said, what buttons offer, and the form that stays open; None: none does."""

    lines: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    form: RefundForm | None = None
    is_sure: bool = True  # what was asked for was understood


class FormTalk:
    """One message of a customer whose form is open, or who wants one opened."""

    def __init__(self, account: Account, said: Utterance, *, today: str) -> None:
        self._account, self._said, self._today = account, said, today
        self._problems: list[str] = []

    def reply(self, form: RefundForm) -> Told:
        """Open the case after a yes, drop it after a no; else fill the form in, and go on asking.

        What is asked stands in `form`, whatever it was that was not understood.
        """
        said = self._said
        if said.consent == "yes" and form.is_shown:
            return self._open(form)
        if said.consent == "no":
            return Told([self._say(Phrase.REFUND_DROPPED)])
        filled = self.filled(form)
        told = self.ask(filled)
        agrees = said.consent == "yes" and told.form and told.form.is_shown
        is_clear = filled != form or form == RefundForm() or self._problems or agrees
        if not is_clear and said.wish != "refund":
            told.lines.insert(0, self._say(Phrase.NOT_UNDERSTOOD))
        return told

    def brings(self, form: RefundForm) -> bool:
        """Whether the message says anything that the form is about."""
        said = self._said
        named = said.named_invoices or said.strange_invoice or said.sums or said.named_reasons
        return bool(said.consent or named or said.objects or (not form.reason and said.reason))

    def ask(self, form: RefundForm) -> Told:
        """Ask for what is missing, with what there is to choose from; or for a yes to all of it."""
        changes = {"is_asked": True, "is_shown": False, "turns_beside": 0}
        form = form.model_copy(update=changes | {"invoices": list(self._account.invoices)})
        if not self._account.refundable:
            return Told([*self._problems, self._say(Phrase.NOTHING_TO_REFUND)])
        if form.invoice and form.amount and form.reason:
            return self._show(form)
        questions: list[str] = []
        actions: list[str] = []
        told = [*self._problems]
        if not form.invoice:
            questions.append(self._say(Phrase.NEEDED_INVOICE))
            offered = self._account.refundable[:MOST_SHOWN]
            actions += [each.label(self._language) for each in offered]
        if not form.amount:
            questions.append(self._say(Phrase.NEEDED_AMOUNT, currency=self._currency(form)))
            if invoice := self._account.invoices.get(form.invoice):
                actions.append(f"{invoice.amount} {invoice.currency}")
        if not form.reason:
            reasons = self._account.reasons()
            listed = "; ".join(reasons.values())
            questions.append(self._say(Phrase.NEEDED_REASON, reasons=listed))
            actions += reasons.values()
        told.append("\n".join([self._say(Phrase.REFUND_NEEDED), *(f"- {q}" for q in questions)]))
        if not form.invoice:
            lines = self._account.invoice_lines(self._account.refundable)
            told.append("\n".join([self._say(Phrase.REFUNDABLE), *(f"- {each}" for each in lines)]))
        return Told(told, [*actions, self._say(Phrase.SUGGEST_NO_CASE)], form)

    def _show(self, form: RefundForm) -> Told:
        """Show what was understood; a yes opens the case."""
        shown = self._say(
            Phrase.REFUND_SHOWN,
            amount=form.amount,
            currency=self._currency(form),
            invoice=form.invoice,
            reason=self._account.reasons().get(form.reason, form.reason),
        )
        actions = [self._say(Phrase.SUGGEST_OPEN_CASE), self._say(Phrase.SUGGEST_NO_CASE)]
        form = form.model_copy(update={"is_shown": True})
        return Told([*self._problems, shown], actions, form)

    def _open(self, form: RefundForm) -> Told:
        """Have the case opened; what is refused now was done by somebody else meanwhile."""
        run = self._account.open_case(
            invoice=form.invoice,
            amount=form.amount,
            reason=form.reason,
            description=form.description,
        )
        if run.outcome == ToolOutcome.OK:
            return Told()
        if run.outcome != ToolOutcome.VALIDATION:
            return Told(form=form)  # its failure is told with those of all tools
        self._problems.append(self._say(Phrase.CASE_NOT_OPENED))
        self._account = self._account.renewed()
        fitting = self._fitting(form)
        return Told([*self._problems, run.error]) if fitting == form else self.ask(fitting)

    def filled(self, form: RefundForm) -> RefundForm:
        """Return the form with what the message names, as far as the rules let it."""
        said = self._said
        names = said.named_invoices or said.sums or said.named_reasons
        if said.objects and not names and (corrected := self._corrected(form)):
            return corrected
        invoice, amount = self._invoice(), self._amount(form)
        reason, description = self._reason(form)
        return self._fitting(
            form.model_copy(
                update={
                    "invoice": invoice or form.invoice,
                    "amount": amount or form.amount,
                    "reason": reason or form.reason,
                    "description": description or form.description,
                }
            )
        )

    def _corrected(self, form: RefundForm) -> RefundForm | None:
        """Return the form without what the message says is wrong; None: that is not known.

        Of two invoices the other one is meant.
        """
        disputed = self._said.disputed
        if not disputed:
            return None
        others = [each.number for each in self._account.refundable if each.number != form.invoice]
        meant = others[0] if disputed == "invoice" and len(others) == 1 else ""
        return self._fitting(form.model_copy(update={disputed: meant}))

    def _invoice(self) -> str:
        """Return the one invoice that the message names; empty: none, or not one that goes."""
        found, unknown = self._said.named_invoices, self._said.strange_invoice
        if len(found) + bool(unknown) > 1:
            self._refuse(Phrase.ONE_INVOICE)
            return ""
        if unknown:
            self._refuse(Phrase.NO_SUCH_INVOICE, invoice=unknown)
        return found[0] if found else ""

    def _amount(self, form: RefundForm) -> str:
        """Return the one sum that the message names; empty: none, or not one that goes."""
        currency, current = self._currency(form), Decimal(form.amount or 0)
        for money in self._said.sums:
            if not money.is_in(currency):
                self._refuse(Phrase.OTHER_CURRENCY, currency=currency, named=money.named)
                return ""
        # "No, 50 and not 45."
        new = [each for each in self._said.sums if not form.amount or each.amount != current]
        if len(new) > 1:
            self._refuse(Phrase.ONE_AMOUNT)
        if len(new) != 1:
            return ""
        (money,) = new
        most = Decimal(self._account.policy.get("most_of_one_case", 0))
        exponent = money.amount.as_tuple().exponent
        is_exact = isinstance(exponent, int) and -DECIMALS <= exponent <= 0
        if not (is_exact and 0 < money.amount <= most):
            self._refuse(Phrase.AMOUNT_REFUSED, amount=f"{most:,}", currency=currency)
            return ""
        return f"{money.amount:.2f}"

    def _reason(self, form: RefundForm) -> tuple[str, str]:
        """Return the reason that the message gives, and its words where it is told in words."""
        said = self._said
        if len(said.named_reasons) > 1:
            self._refuse(Phrase.ONE_REASON)
            return "", ""
        names_else = said.named_invoices or said.sums
        if not said.named_reasons and form.reason and names_else:
            return "", ""
        reason = said.reason if said.reason in self._account.reasons() else ""
        last = self._account.cooling_off_until
        if reason == "within_cooling_off" and last and last < self._today:
            self._refuse(Phrase.COOLING_OFF_ENDED, day=last)
            return "", ""
        return reason, "" if said.named_reasons or not reason else said.text[:LONGEST_DESCRIPTION]

    def _fitting(self, form: RefundForm) -> RefundForm:
        """Return the form without what the customer's invoices do not allow, and say so."""
        invoice = self._account.invoices.get(form.invoice)
        if form.invoice and invoice is None:
            return form.model_copy(update={"invoice": ""})
        if invoice and invoice.case:
            self._refuse(Phrase.INVOICE_HAS_CASE, invoice=invoice.number, case=invoice.case)
            return form.model_copy(update={"invoice": ""})
        if invoice and form.amount and Decimal(form.amount) > invoice.amount:
            self._refuse(
                Phrase.AMOUNT_BEYOND,
                invoice=invoice.number,
                amount=invoice.amount,
                currency=invoice.currency,
            )
            return form.model_copy(update={"amount": ""})
        return form

    def _currency(self, form: RefundForm) -> str:
        invoice: Invoice | None = self._account.invoices.get(form.invoice)
        return invoice.currency if invoice else self._account.currency

    def _refuse(self, phrase: Phrase, **values: object) -> None:
        self._problems.append(self._say(phrase, **values))

    @property
    def _language(self) -> str:
        return self._said.language

    def _say(self, phrase: Phrase, **values: object) -> str:
        return phrase.in_language(self._language, **values)
