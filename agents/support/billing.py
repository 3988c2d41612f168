"""Billing: answers about plans, invoices and refunds from the customer's account, and opens cases.

A model decides which tools are called; without one, rules do, and a dialogue by form asks for what
a refund case needs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from agents.attributes import REFUND_IN_PROGRESS, Persona, RefundForm, Remark, StateUpdates
from agents.contract import View, Writes, llm_agent
from agents.llm.history import day, history_blocks
from agents.llm.model import Model
from agents.names import Role
from agents.support.dialogue.account import OPENED, Account
from agents.support.dialogue.refund_form import FormTalk, Told, left_alone
from agents.support.dialogue.replies import named
from agents.support.dialogue.utterance import ASKS, BUTTONS, Utterance
from agents.tools import loop, toolbox
from agents.words import ENGLISH, Phrase, contact, english_name
from prompts.prompt import Prompt

PROMPT = Prompt("billing", "language", "today", "flags", "tone", "history", "request")
RECENT = 12  # messages
# What was looked up in tables is as sure as they are; of the account alone, whether it answers is
# not known.
WRITTEN_CONFIDENCE, SHOWN_CONFIDENCE = 0.9, 0.5


class Request(View):
    """What billing reads: what the customer wants, and what was said before."""

    text: str = ""
    language: str = ENGLISH
    history: list[Remark] = []
    text_eng: str = ""
    last_agent: str = ""
    context_flags: dict[str, bool] = {}
    refund_form: RefundForm | None = None
    billing_case_id: str = ""
    current_time: str = ""
    assistant: Persona = Field(default_factory=Persona)


@llm_agent(
    Role.BILLING,
    reads=Request,
    writes=("response", "suggested_actions", "generation_confidence", "state_updates"),
)
def serve(view: Request, llm: Model) -> Writes:
    """Let the model look things up, ask for what is missing, and open a case.

    Raises ModelFailure.
    """
    answer = loop.run(
        llm,
        PROMPT,
        language=english_name(view.language),
        today=day(view.current_time),
        flags=", ".join(sorted(name for name, on in view.context_flags.items() if on)),
        tone=view.assistant.tone,
        history=history_blocks(view.history[-RECENT:]),
        request=view.text,
    )
    return {
        "response": answer.with_failures(view.language),
        "generation_confidence": WRITTEN_CONFIDENCE,
        **_updates(view, _waiting(view, answer)),
    }


@serve.without_model
def show(view: Request) -> Writes:
    """Answer from the account, and ask for what a refund case needs, by rules.

    A case that the turn has opened already, whichever attempt at it did, is told and no more.
    """
    language = view.language
    account = Account(toolbox.at_hand(), language)
    told = Told() if _opened() else _told(view, account)
    opened = _opened()
    if account.failures and not opened:
        failed = loop.failures_told(account.failures, language)
        # Another system may have opened the case: that is looked up before there is another yes.
        form = view.refund_form and view.refund_form.model_copy(update={"is_shown": False})
        told = Told([*failed, contact(language, view.assistant)], form=form)
    lines = [account.case_line(case) for case in opened]
    if opened:
        lines.append(account.terms())
    return {
        "response": "\n\n".join([*lines, *told.lines]),
        "suggested_actions": told.actions,
        "generation_confidence": WRITTEN_CONFIDENCE if told.is_sure else SHOWN_CONFIDENCE,
        **_updates(view, told.form, account.cases if account.is_known else {}),
    }


def _told(view: Request, account: Account) -> Told:
    """What is said to whoever asks, and what of a refund stays open."""
    language, form = view.language, view.refund_form
    if not account.is_known:
        return Told([Phrase.NO_ACCOUNT.in_language(language), contact(language, view.assistant)])
    said = Utterance(
        view.text.strip(),
        view.text_eng.strip(),
        language,
        labels=tuple((each.label(language), number) for number, each in account.invoices.items()),
        invoices=tuple(account.invoices),
        cases=tuple(account.cases),
    )
    talk = FormTalk(account, said, today=view.current_time[:10])
    if form is None or not form.is_asked:
        if said.wish not in {"", "refund"}:
            return _answered(said, account, view)
        goes_on = view.last_agent == Role.BILLING and bool(said.sums or said.named_reasons)
        if said.wish or goes_on:
            return talk.reply(_begun(view, said, account) if goes_on else RefundForm())
        return _answered(said, account, view)
    if talk.brings(form) or said.wish in {"", "refund"}:
        return talk.reply(form)
    between, asked = _answered(said, account, view), talk.ask(form)
    return Told([*between.lines, *asked.lines], asked.actions, asked.form)


def _begun(view: Request, said: Utterance, account: Account) -> RefundForm:
    """The form as a dialogue with a model left it that fails now: what the customer has named."""
    form = RefundForm()
    for remark in view.history[-RECENT:]:
        if remark.role == "user":
            earlier = replace(said, text=remark.text, english="")
            form = FormTalk(account, earlier, today=view.current_time[:10]).filled(form)
        elif named(remark.text, account.cases):
            form = RefundForm()  # what was said before belongs to that case
    return form


def _answered(said: Utterance, account: Account, view: Request) -> Told:
    """Answer from the account, and offer what else can be asked."""
    language, wish = said.language, said.wish
    lines = {
        "plan": lambda: account.plan_lines() or [Phrase.NO_PLAN.in_language(language)],
        "invoices": lambda: _invoices(said, account),
        "case": lambda: _cases(said, account, view.billing_case_id),
        "policy": account.policy_lines,
    }.get(wish, lambda: [*account.plan_lines(), *account.invoice_lines()])()
    offered = [
        button.in_language(language)
        for each, button in BUTTONS.items()
        if each != wish and (each != "refund" or account.refundable)
    ]
    told = "\n".join(f"- {line}" for line in lines) if len(lines) > 1 else "".join(lines)
    more = [] if wish else [contact(language, view.assistant)]
    return Told([told, *more], offered, is_sure=bool(wish))


def _invoices(said: Utterance, account: Account) -> list[str]:
    """The invoices that are named, else the newest."""
    language = said.language
    if said.named_invoices:
        return account.invoice_lines([account.invoices[each] for each in said.named_invoices])
    if said.strange_invoice:
        return [Phrase.NO_SUCH_INVOICE.in_language(language, invoice=said.strange_invoice)]
    return account.invoice_lines() or [Phrase.NO_INVOICES.in_language(language)]


def _cases(said: Utterance, account: Account, last_case: str) -> list[str]:
    """The cases that are named, else the one that was opened last, else all."""
    known = [last_case] if last_case in account.cases else list(account.cases)
    lines = account.case_lines(said.named_cases or known)
    return lines or [Phrase.NO_CASES.in_language(said.language)]


def _waiting(view: Request, answer: loop.Answer) -> RefundForm | None:
    """The form after an answer of a model: where it asks, a yes or a sum alone is a reply to it."""
    if _opened():
        return None
    form = view.refund_form or RefundForm()
    if not any(mark in answer.text for mark in ASKS):
        return left_alone(form) if view.refund_form else None
    listed = [run.result for run in answer.runs if run.tool == "get_invoices" and run.result]
    invoices = [row["invoice"] for rows in listed for row in rows] or form.invoices
    changes = {"is_shown": False, "turns_beside": 0, "invoices": list(dict.fromkeys(invoices))}
    return form.model_copy(update=changes)


def _opened() -> list[dict[str, Any]]:
    """The cases that this turn opened, whichever attempt at it did."""
    done = toolbox.at_hand().effects()
    return [run.result for run in done if run.tool == "open_refund_case" and run.result]


def _updates(
    view: Request, form: RefundForm | None = None, cases: Mapping[str, str] | None = None
) -> Writes:
    """What the conversation keeps: the form, the case, and whether a refund is under way.

    `cases` says what became of the customer's cases, where that was looked up.
    """
    opened = [case["case"] for case in _opened()]
    number = opened[-1] if opened else view.billing_case_id
    before = view.context_flags.get(REFUND_IN_PROGRESS, False)
    is_undecided = before if cases is None else cases.get(number) == OPENED
    is_open = bool(opened or (form and form.is_asked) or is_undecided)
    if not (opened or form or view.refund_form or is_open != before):
        return {}
    updates = StateUpdates(
        billing_case_id=number, context_flags={REFUND_IN_PROGRESS: is_open}, refund_form=form
    )
    return {"state_updates": updates}
