"""Orchestrator: plans an analysis, and writes its answer from what the specialists gave."""

from collections.abc import Mapping
from typing import Any, Self

from django.conf import settings
from django.db import connection
from pydantic import BaseModel, Field, model_validator

from agents.analysis.evidence import references, with_markers
from agents.analysis.obligation_list import found_listed, listed
from agents.analysis.obligations import checklist
from agents.analysis.shapes import (
    Evidence,
    Given,
    Item,
    Output,
    Plan,
    QueryType,
    Request,
    Shortcoming,
    given,
    problem_of,
)
from agents.analysis.work_plan import Analysis, Proposal, estimated, planned, usual
from agents.attributes import Persona, Reason, Remark
from agents.contract import View, Writes, llm_agent
from agents.decision import Stage
from agents.documentation.citations.check import CheckedAnswer, check
from agents.documentation.citations.statements import markers, normalised
from agents.documentation.passages import heading, with_sources, without_written_list
from agents.llm.history import history_blocks
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.schema import REPAIRABLE, at_most, parse
from agents.names import SPECIALISTS, Role
from agents.tools.tool import excerpt
from agents.tools.toolbox import at_hand
from agents.words import ENGLISH, Phrase, english_name
from prompts.prompt import Block, Prompt

PLANNING = Prompt("orchestrator", "question", "history", "titles", "simple", "thorough")
SYNTHESIS = Prompt(
    "synthesis", "language", "tone", "may_ask", "question", "wishes", "review", "given", "passages"
)
SHOWN = 6  # messages before the question
VAGUE = 0.6
MOST_QUESTIONS, LONGEST_QUESTION = 3, 200
MOST_OBLIGATIONS = 12  # of a list without a model
MOST_PASSAGES = 40  # of an answer
# What a user is told could not be done.
PARTS: Mapping[Role, Phrase] = {
    Role.EXTRACTOR: Phrase.PART_PASSAGES,
    Role.CLASSIFIER: Phrase.PART_KINDS,
    Role.REQUIREMENT_EXTRACTOR: Phrase.PART_REQUIREMENTS,
    Role.COMPLIANCE: Phrase.PART_VERDICTS,
    Role.RISK_VERIFIER: Phrase.PART_RISKS,
    Role.CITATION_AUDITOR: Phrase.PART_CITATIONS,
    Role.GAP_SYNTHESIZER: Phrase.PART_GAPS,
}


class Assignment(View):
    """What the orchestrator reads: the question, and what the specialists gave."""

    stage: str = ""
    canonical_question: str = ""
    language: str = ENGLISH
    history: list[Remark] = []
    response_notes: list[str] = []
    assistant: Persona = Field(default_factory=Persona)
    query_type: QueryType = "compliance"  # where no router said another
    analysis_plan: Plan | None = None
    plan_step: int = 0
    extra_rounds: int = 0
    agent_outputs: dict[Role, Output] = {}
    evidence: dict[str, Evidence] = {}
    analysis_target: str = ""
    gravest: int = 0
    documents_read: list[str] = []
    shortcomings: list[Shortcoming] = []
    is_incomplete: bool = False
    quality_analysis: str = ""


class Synthesis(BaseModel):
    """What the model makes of it: an answer, or who is to work once more before there is one."""

    more: list[str] = Field(description="specialists that are to work once more; usually none")
    why: str
    answer: str = Field(description="in Markdown; empty if somebody is to work once more")

    @model_validator(mode="after")
    def _cites(self) -> Self:
        if not self.more and not markers(normalised(self.answer)):
            raise ValueError("the answer cites nothing: end its sentences with markers like [C1]")
        return self


@llm_agent(
    Role.ORCHESTRATOR,
    reads=Assignment,
    writes=(
        "analysis_plan",
        "analysis_request",
        "canonical_question",
        "clarifying_questions",
        "synthesis_report",
        "source_references",
        "limitations",
        "response",
        "sources_used",
        "citations_used",
        "generation_confidence",
        "validation_result",
        "answer_form",
        "suggested_actions",
    ),
)
def orchestrate(view: Assignment, llm: Model) -> Writes:
    """Plan, or write the answer. Raises ModelFailure."""
    return _answered(view, llm) if view.stage == Stage.SYNTHESIS else _planned(view, llm)


@orchestrate.without_model
def unplanned(view: Assignment) -> Writes:
    """Without a model nothing is judged: what is prescribed is listed, with what is near to it.

    Where that was not asked for, or is nothing, the documents are quoted. What specialists found
    before their answer could not be written is listed with their verdicts.
    """
    if view.stage == Stage.SYNTHESIS:
        return _unwritten(view)
    plan: Writes = {"analysis_plan": Plan(query_type=view.query_type, origin="rules")}
    if view.query_type != "compliance":
        return plan
    found = checklist(at_hand().caller, question=view.canonical_question, limit=MOST_OBLIGATIONS)
    connection.close()
    return plan | (listed(found, view.language) if found.obligations else {})


def _planned(view: Assignment, llm: Model) -> Writes:
    analysis, plan = _proposed(view, llm)
    choices = settings.MODELS | {
        name: llm.choice for name in view.assistant.models if name == Role.ORCHESTRATOR
    }
    writes: Writes = {"analysis_plan": estimated(plan, choices)}
    if analysis.is_follow_up and analysis.question.strip():
        writes["canonical_question"] = analysis.question.strip()
    if analysis.needs_clarification and analysis.vagueness_score > VAGUE:
        questions = at_most(analysis.clarifying_questions, MOST_QUESTIONS, LONGEST_QUESTION)
        writes |= {
            "clarifying_questions": questions,
            "needs_clarification": True,
            "clarification_reason": Reason.VAGUE_REQUEST,
            "clarification_message": "",
        }
    return writes


def _proposed(view: Assignment, llm: Model) -> tuple[Analysis, Plan]:
    """What the model says of the question, and its plan; the usual one if that cannot be done."""
    try:
        proposal = llm.ask(
            PLANNING,
            Proposal,
            question=view.canonical_question,
            history=history_blocks(view.history[-SHOWN:]),
            titles=_listed(),
            simple=str(settings.ANALYSIS_SIMPLE),
            thorough=str(settings.ANALYSIS_THOROUGH),
        )
    except ModelFailure as failure:
        if failure.outcome not in REPAIRABLE:
            raise
        # Its plan cannot be followed; what else it says may hold.
        analysis = parse(failure.reply, Analysis)
        return analysis, usual(analysis, failure.problem)
    return proposal, planned(proposal)


def _listed() -> str:
    """What there is to read, for who plans."""
    if not any(tool.name == "get_document_list" for tool in at_hand().tools):
        return ""
    run = at_hand().call("get_document_list")
    return excerpt(str(run.result)) if run.result else ""


def _answered(view: Assignment, llm: Model) -> Writes:
    """Let the model write the answer; only what the passages say stays. Raises ModelFailure."""
    found = given(view.agent_outputs)
    cited = _cited(found, view.evidence)
    if not cited:
        return {"synthesis_report": _report(view)}
    marked = references(cited)
    may_ask = not view.extra_rounds and not view.quality_analysis
    synthesis = llm.ask(
        SYNTHESIS,
        Synthesis,
        documents=tuple(dict.fromkeys(each.document_id for each in cited)),
        language=english_name(view.language),
        tone=view.assistant.tone,
        may_ask="yes" if may_ask else "no",
        question=view.canonical_question,
        wishes=[Block("wish", each) for each in view.response_notes],
        review=view.quality_analysis,
        given=[Block(role, _told(each, cited)) for role, each in found.items()]
        + [Block("missing", f"{each.role}: {each.reason}") for each in view.shortcomings],
        passages=[
            Block("passage", f"{heading(each)}\n{excerpt(each.text)}", {"marker": each.marker})
            for each in marked
        ],
    )
    if may_ask and (request := _request(synthesis, found)):
        return {"analysis_request": request}
    question, language = view.canonical_question, view.language
    checked = check(without_written_list(synthesis.answer, marked), marked, question, language)
    if not checked.citations:
        raise ModelFailure(Outcome.MALFORMED, "the answer cites no passage that it was given")
    writes = _written(view, checked)
    llm.tokens.replace(writes["response"])
    return writes | {"source_references": marked, "synthesis_report": _report(view)}


def _unwritten(view: Assignment) -> Writes:
    """What specialists gave, in place of an answer; not in place of one that was written before."""
    report: Writes = {"synthesis_report": _report(view)}
    found = given(view.agent_outputs)
    cited = _cited(found, view.evidence)
    if view.quality_analysis:
        return report
    listing = found_listed(found, cited, view.language, _undone(view))
    connection.close()
    return report | _limited(view) | listing if listing else report


def _request(synthesis: Synthesis, found: Mapping[Role, Given]) -> Request | None:
    """Who is to work once more; None: nobody who can."""
    names = list(dict.fromkeys(name for name in synthesis.more if name in set(SPECIALISTS)))
    if not names or problem_of([names], list(found)):
        return None
    return Request(specialists=[Role(name) for name in names], why=synthesis.why)


def _cited(found: Mapping[Role, Given], evidence: Mapping[str, Evidence]) -> list[Evidence]:
    """The passages that specialists named, in the order in which they did."""
    ids = dict.fromkeys(
        each for result in found.values() for item in result.items for each in item.evidence
    )
    return [evidence[each] for each in ids if each in evidence][:MOST_PASSAGES]


def _told(result: Given, cited: list[Evidence]) -> str:
    """What a specialist gave, a line for each item, with the markers of its passages."""
    lines = [result.summary]
    for name, items in result.lists():
        lines += [f"{name}:", *(f"- {_line(item)}" for item in items)]
    return with_markers("\n".join(lines), cited)


def _line(item: Item) -> str:
    values: dict[str, Any] = item.model_dump(exclude={"evidence"})
    told = "; ".join(f"{name}: {value}" for name, value in values.items() if value != "")
    return " ".join([told, *(f"[{each}]" for each in item.evidence)])


def _written(view: Assignment, checked: CheckedAnswer) -> Writes:
    """The answer with its sources, and what could not be done."""
    text = "\n\n".join([checked.text, *_undone(view)])
    cited = {each.marker: each for each in checked.citations}
    return (
        with_sources(text, cited.values(), view.language)
        | _limited(view)
        | {
            "citations_used": checked.citations,
            "generation_confidence": checked.confidence,
            "validation_result": checked.findings(),
            "answer_form": "written",
            "suggested_actions": [],
        }
    )


def _undone(view: Assignment) -> list[str]:
    """What a user is told could not be done; nothing where all was."""
    failed = dict.fromkeys(each.role for each in view.shortcomings if each.role in PARTS)
    parts = ", ".join(PARTS[role].in_language(view.language) for role in failed)
    return [Phrase.ANALYSIS_INCOMPLETE.in_language(view.language, parts=parts)] if parts else []


def _limited(view: Assignment) -> Writes:
    return {"limitations": [f"{each.role}: {each.reason}" for each in view.shortcomings]}


def _report(view: Assignment) -> dict[str, Any]:
    """All that was found and could not be, as JSON values, for who wants more than the answer."""
    found = given(view.agent_outputs)
    steps = view.analysis_plan.steps[: view.plan_step] if view.analysis_plan else []
    return {
        "target": view.analysis_target,
        "gravest": view.gravest,
        "documents": view.documents_read,
        "is_incomplete": view.is_incomplete,
        "steps": [list(map(str, step)) for step in steps],
        "given": {role: each.model_dump(mode="json") for role, each in found.items()},
        "shortcomings": [each.model_dump(mode="json") for each in view.shortcomings],
        "dropped": sum(each.dropped for each in view.agent_outputs.values()),
    }
