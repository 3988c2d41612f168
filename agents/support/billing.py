"""Billing: answers about plans, invoices and refunds from the customer's account, and opens cases.

A model decides which tools are called; without one, the account is shown as it is.
"""

from collections.abc import Sequence

from agents.attributes import REFUND_IN_PROGRESS, Remark, StateUpdates
from agents.contract import View, Writes, llm_agent
from agents.llm.history import day, history_blocks
from agents.llm.model import Model
from agents.models import ToolRun
from agents.names import Role
from agents.tools import loop, toolbox
from agents.tools.tool import ToolOutcome
from agents.words import ENGLISH, Phrase, contact, english_name
from prompts.prompt import Prompt

PROMPT = Prompt("billing", "language", "today", "flags", "history", "request")
RECENT = 12  # messages
# What was looked up in tables is as sure as they are; of the account alone, whether it answers is
# not known.
WRITTEN_CONFIDENCE, SHOWN_CONFIDENCE = 0.9, 0.5
MOST_SHOWN = 3


class Request(View):
    """What billing reads: what the customer wants, and what was said before."""

    text: str = ""
    language: str = ENGLISH
    history: list[Remark] = []
    context_flags: dict[str, bool] = {}
    current_time: str = ""


@llm_agent(
    Role.BILLING,
    reads=Request,
    writes=("response", "generation_confidence", "state_updates"),
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
        history=history_blocks(view.history[-RECENT:]),
        request=view.text,
    )
    return {
        "response": answer.with_failures(view.language),
        "generation_confidence": WRITTEN_CONFIDENCE,
        **_updates(),
    }


@serve.without_model
def show(view: Request) -> Writes:
    """Say what this turn has opened, what the account holds, and where people are reached."""
    tools, language = toolbox.at_hand(), view.language
    told = [Phrase.CASE_OPENED.in_language(language, **case) for case in _opened()]
    plan = tools.call("get_subscription")
    if plan.outcome == ToolOutcome.VALIDATION:
        told.append(Phrase.NO_ACCOUNT.in_language(language))
    else:
        told += _account([plan, tools.call("get_invoices")], language)
    told.append(contact(language))
    return {
        "response": "\n\n".join(told),
        "generation_confidence": SHOWN_CONFIDENCE,
        **_updates(),
    }


def _opened() -> list[dict[str, str]]:
    """The cases that this turn opened, whichever attempt at it did."""
    done = toolbox.at_hand().effects()
    return [run.result for run in done if run.tool == "open_refund_case" and run.result]


def _updates() -> Writes:
    """What the conversation keeps of a case that was opened."""
    if not (opened := _opened()):
        return {}
    flags = {REFUND_IN_PROGRESS: True}
    return {"state_updates": StateUpdates(billing_case_id=opened[-1]["case"], context_flags=flags)}


def _account(runs: Sequence[ToolRun], language: str) -> list[str]:
    """The plans and the newest invoices, a line each."""
    plans, invoices = (run.result or [] for run in runs)
    lines = [Phrase.YOUR_PLAN.in_language(language, **each) for each in plans[:MOST_SHOWN]]
    lines += [Phrase.YOUR_INVOICE.in_language(language, **each) for each in invoices[:MOST_SHOWN]]
    return ["\n".join(f"- {line}" for line in lines)] if lines else []
