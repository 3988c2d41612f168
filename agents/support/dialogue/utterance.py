"""Utterance: what a customer says to billing, read without a model.

What is understood comes from the customer's own data, from sums of money as Babel reads them, from
what buttons say, and for the rest from exemplars: no word decides by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from django.conf import settings

from agents.attributes import RefundForm
from agents.ending.small_talk import kind_of
from agents.intake.exemplars import votes, worth
from agents.support.dialogue.amounts import Money, amounts
from agents.support.dialogue.replies import (
    PART,
    REASONS,
    Consent,
    consent,
    in_all_languages,
    named,
    objection,
    reasons_named,
    strange,
    without,
)
from agents.words import ENGLISH, Phrase, base_language, words
from knowledge.errors import EmbeddingUnavailable

Wish = Literal["refund", "plan", "invoices", "case", "policy", ""]
BUTTONS: dict[Wish, Phrase] = {
    "refund": Phrase.SUGGEST_REFUND,
    "plan": Phrase.SUGGEST_PLAN,
    "invoices": Phrase.SUGGEST_INVOICES,
    "case": Phrase.SUGGEST_CASE,
    "policy": Phrase.SUGGEST_POLICY,
}
NO_REASON = "none"
ASKS = ("?", "\uff1f")
FIELDS = ("invoice", "amount", "reason")
# How near the nearest kind has to be, as the cosine of a single exemplar, and its share of the
# votes; by whether the multilingual model is asked, whose cosines lie farther apart.
LEAST_OF_WISH = {False: (0.4, 0.45), True: (0.7, 0.45)}
LEAST_OF_REASON = {False: (0.47, 0.5), True: (1.1, 0.6)}
FIRST_CASE = "R10001"
SHORTEST_CASE = 4  # digits


@dataclass(frozen=True)
class Utterance:
    """One message, read for what it says about the account of whoever wrote it."""

    text: str
    english: str = ""  # the same in English, where there is a translation
    language: str = ENGLISH
    labels: tuple[tuple[str, str], ...] = ()  # what the button says of each invoice, and its number
    invoices: tuple[str, ...] = ()  # of the customer
    cases: tuple[str, ...] = ()

    @cached_property
    def rest(self) -> str:
        """The text without what buttons say of an invoice: its date and its sum were not typed."""
        text = self.text
        for label, number in self.labels:
            before, found, after = text.partition(label)
            text = f"{before}{number}{after}" if found else text
        return text

    @cached_property
    def named_invoices(self) -> list[str]:
        """The customer's invoices that it names."""
        return named(self.rest, self.invoices)

    @cached_property
    def strange_invoice(self) -> str:
        """What is written like a number of the customer's invoices and is none; or empty."""
        return strange(self.rest, self.invoices)

    @cached_property
    def named_cases(self) -> list[str]:
        """The numbers of cases that it names, the customer's and others."""
        unknown = strange(self.rest, self.cases or (FIRST_CASE,), shortest=SHORTEST_CASE)
        return [*named(self.rest, self.cases or (FIRST_CASE,)), *filter(None, [unknown])]

    @cached_property
    def sums(self) -> list[Money]:
        """The sums of money that it names."""
        numbers = [*self.named_invoices, self.strange_invoice, *self.named_cases]
        return amounts(without(self.rest, filter(None, numbers)), self.language)

    @cached_property
    def consent(self) -> Consent:
        """Whether all of it says yes, or no."""
        return "no" if kind_of([self.text]) == "giving_up" else consent(self.text)

    @cached_property
    def objects(self) -> bool:
        """Whether it says no and goes on."""
        return bool(objection(self.text))

    @cached_property
    def named_reasons(self) -> set[str]:
        """The reasons that it gives by their names."""
        return reasons_named(self.rest)

    @cached_property
    def reason(self) -> str:
        """The one reason that it gives, by name or told; empty: none."""
        if self.named_reasons:
            return next(iter(self.named_reasons)) if len(self.named_reasons) == 1 else ""
        least = LEAST_OF_REASON[self._is_foreign]
        parts = [part for part in PART.split(self._bare) if words(part)]
        nearest = self._nearest(parts, "reason", [*REASONS[:-1], NO_REASON], least)
        told = [(near, kind) for near, kind in nearest if kind != NO_REASON]
        return max(told)[1] if told else ""

    @cached_property
    def disputed(self) -> str:
        """The field of a form that it says is wrong, and no more; empty: that is not known."""
        least = LEAST_OF_WISH[self._is_foreign]
        parts = [part for part in PART.split(self._bare) if words(part) and not consent(part)]
        nearest = self._nearest(parts, "change", FIELDS, least)
        return max(nearest)[1] if nearest else ""

    @cached_property
    def wish(self) -> Wish:
        """What it asks for; empty: that is not known."""
        plain = self.text.strip().casefold()
        for wish, button in BUTTONS.items():
            if plain in in_all_languages(button):
                return wish
        if self.named_cases:
            return "case"
        # Who names an invoice asks about that, and not about the plan or the rules.
        names_invoice = self.named_invoices or self.strange_invoice
        among: Sequence[Wish] = ("refund", "invoices") if names_invoice else tuple(BUTTONS)
        found = self._nearest([self._bare], "billing", among, LEAST_OF_WISH[self._is_foreign])
        unknown: Wish = "invoices" if names_invoice else ""
        return next((wish for _, kind in found for wish in among if wish == kind), unknown)

    def answers(self, form: RefundForm | None) -> bool:
        """Whether it tells the reason that was asked for just now, and asks nothing."""
        waits = form is not None and not form.reason and form.turns_beside == 0
        return waits and not any(mark in self.text for mark in ASKS) and bool(self.reason)

    @property
    def _bare(self) -> str:
        """The text, in English if it was translated, without numbers of invoices and cases."""
        return without(self.english or self.rest, [*self.named_invoices, *self.named_cases])

    @property
    def _is_foreign(self) -> bool:
        is_english = base_language(self.language) == ENGLISH or self.english not in {"", self.text}
        return settings.CROSS_LINGUAL and not is_english

    def _nearest(
        self,
        texts: Sequence[str],
        prefix: str,
        kinds: Sequence[str],
        least: tuple[float, float],
    ) -> list[tuple[float, str]]:
        """Return the kind that each text is nearest to, and how near, where it is near enough."""
        names = {f"{prefix}_{kind}": kind for kind in kinds}
        try:
            rows = votes(texts, list(names), is_foreign=self._is_foreign) if texts else []
        except EmbeddingUnavailable:
            return []
        found = []
        for row in rows:
            best = max(row, key=lambda name: row[name])
            near, total = worth(row[best]), sum(row.values())
            if near >= least[0] and row[best] >= least[1] * total:
                found.append((near, names[best]))
        return found
