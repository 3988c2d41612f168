"""Specialist: works out one part of an analysis with the tools of its role, into its shape.

What fails is said in the output, with the passages found by then, and the others go on.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from agents.analysis.evidence import merged, named, of_runs
from agents.analysis.shapes import (
    SHAPES,
    Checklist,
    Evidence,
    Given,
    Output,
    Reason,
    Shortcoming,
    given,
)
from agents.contract import Agent, View, Writes, llm_agent
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import form_of, parse, unfilled
from agents.names import Role
from agents.tools import loop
from agents.tools.tool import excerpt
from agents.tools.toolbox import at_hand
from prompts.prompt import Block, Prompt

FORM = Prompt("form", "problem", "answer", "form")
# Of passages that others found, a specialist is shown so many; its own come with its tools.
MOST_SHOWN = 12
# Passages that are kept of a specialist that failed: nobody said which of them matter.
MOST_RESCUED = 6
REASONS: Mapping[Outcome, Reason] = {
    Outcome.BUDGET_SPENT: "budget",
    Outcome.OUT_OF_TIME: "time",
    **dict.fromkeys((Outcome.EMPTY, Outcome.MALFORMED, Outcome.WRONG_SCHEMA), "shape"),
}
G = TypeVar("G", bound=Given)
# Holds what a specialist gave to what is known; says how many passages did not stand.
Judge = Callable[[Any, Mapping[Role, Given]], Given]
# What every specialist may write; several at the same time, as each has a reducer.
WRITES = (
    "agent_outputs",
    "evidence",
    "analysis_target",
    "gravest",
    "documents_read",
    "shortcomings",
    "is_incomplete",
)


class Assignment(View):
    """What every specialist reads: the question, and what those before it gave."""

    canonical_question: str = ""
    agent_outputs: dict[Role, Output] = {}
    evidence: dict[str, Evidence] = {}


def declare(
    role: Role,
    *,
    rounds: int = loop.ROUNDS,
    needs: Role | None = None,
    judge: Judge = lambda result, _: result,
) -> Agent[Assignment]:
    """Declare the agent of a specialist: its prompt has its name, its shape is in `SHAPES`.

    It stops without the output of the specialist that it `needs`. `judge` holds what its model gave
    to what the others did.
    """
    prompt = prompt_of(role)
    shape = SHAPES[role]

    @llm_agent(role, reads=Assignment, writes=WRITES)
    def work(view: Assignment, llm: Model) -> Writes:
        before = given(view.agent_outputs)
        if needs and not _is_there(before.get(needs)):
            return _failed(role, "checklist")
        answer = loop.run(
            llm,
            prompt,
            rounds=rounds,
            question=view.canonical_question,
            before=[Block(name, each.model_dump_json()) for name, each in before.items()],
            passages=_shown(view.evidence.values()),
            form=form_of(shape),
        )
        known = merged(view.evidence, of_runs(answer.runs))
        result, dropped = only_known(_shaped(llm, answer.text, shape), known)
        return _gave(role, judge(result, before), known, answer, dropped)

    @work.without_model
    def unable(_: Assignment) -> Writes:
        return _failed(role, "model")

    @work.unless_done
    def missing(reason: Any, detail: str) -> Writes:
        return _failed(role, reason, detail)

    @work.after_failure
    def rescued(_: Assignment, failure: ModelFailure) -> Writes:
        found = dict(list(of_runs(at_hand().runs).items())[:MOST_RESCUED])
        reason = REASONS.get(failure.outcome, "model")
        return _failed(role, reason, str(failure)) | _read(found)

    return work


def _shown(evidence: Iterable[Evidence]) -> list[Block]:
    """The nearest passages, as a model is given them."""
    return [
        told(each.id, f"{each.title} > {each.section}", each.text)
        for each in nearest(evidence)[:MOST_SHOWN]
    ]


def _is_there(result: Given | None) -> bool:
    return isinstance(result, Checklist) and bool(result.requirements)


def nearest(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Return passages in the same order however they were written down, the nearest first."""
    return sorted(evidence, key=lambda each: (-(each.score or 0.0), each.id))


def prompt_of(role: Role) -> Prompt:
    """Return the prompt of a specialist."""
    return Prompt(role.value, "question", "before", "passages", "form")


def told(name: str, place: str, text: str) -> Block:
    """Return a passage that others named, as a model sees it under its id."""
    return Block("passage", f"[{name}] {place}\n{excerpt(text)}")


def _shaped(llm: Model, text: str, shape: type[G]) -> G:
    """Return an answer in its shape; one without it is asked for once more. Raises ModelFailure."""
    try:
        return parse(text, shape, unfilled)
    except ModelFailure as failure:
        form = form_of(shape)
        return llm.ask(FORM, shape, problem=failure.problem, answer=text, form=form)


def only_known(result: G, known: Collection[str]) -> tuple[G, int]:
    """Return what a specialist gave without passages that no tool gave, and how many these were."""
    dropped, lists = 0, {}
    for name, items in result.lists():
        kept = []
        for item in items:
            ids = named(item.evidence, known)
            dropped += len(ids.invented)
            kept.append(item.model_copy(update={"evidence": ids.known}))
        lists[name] = kept
    return result.model_copy(update=lists), dropped


def _gave(
    role: Role, result: Given, known: Mapping[str, Evidence], answer: loop.Answer, dropped: int
) -> Writes:
    used = {each: known[each] for item in result.items for each in item.evidence}
    failed = [f"{run.tool} {run.error_id}" for run in answer.failures]
    output = Output(
        result=result.model_dump(mode="json"),
        rounds=answer.rounds,
        stopped=answer.stopped,
        dropped=dropped,
    )
    return _read(used) | {
        "agent_outputs": {role: output},
        "analysis_target": getattr(result, "target", ""),
        "gravest": max((item.gravity for item in result.items), default=0),
        "shortcomings": [
            Shortcoming(role=role, reason="tool", detail=", ".join(failed))
        ] if failed else [],
        "is_incomplete": bool(answer.stopped or failed),
    }  # fmt: skip


def _read(evidence: Mapping[str, Evidence]) -> Writes:
    documents = list(dict.fromkeys(each.document_id for each in evidence.values()))
    return {"evidence": evidence, "documents_read": documents}


def _failed(role: Role, reason: Reason, detail: str = "") -> Writes:
    return {
        "agent_outputs": {role: Output(reason=reason)},
        "shortcomings": [Shortcoming(role=role, reason=reason, detail=detail)],
        "is_incomplete": True,
    }
