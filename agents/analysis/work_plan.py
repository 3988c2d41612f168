"""Plan: which specialists work on a question, in which order, and what that may cost."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from django.conf import settings
from pydantic import BaseModel, Field, model_validator

from agents.analysis.shapes import Estimate, Plan, QueryType, problem_of
from agents.attributes import Unit
from agents.llm.cost import habits, rates
from agents.llm.requests import Choice
from agents.names import Role

EXTRACT, CLASSIFY = [Role.EXTRACTOR], [Role.EXTRACTOR, Role.CLASSIFIER]
# What is done where no model gave a plan that can be followed.
DEFAULTS: Mapping[QueryType, list[list[Role]]] = {
    "simple_search": [EXTRACT],
    "cross_doc": [CLASSIFY, [Role.GAP_SYNTHESIZER]],
    "compliance": [EXTRACT, [Role.REQUIREMENT_EXTRACTOR], [Role.COMPLIANCE]],
    "risk": [EXTRACT, [Role.RISK_VERIFIER]],
    "synthesis": [CLASSIFY, [Role.GAP_SYNTHESIZER]],
    "reporting": [CLASSIFY, [Role.RISK_VERIFIER, Role.GAP_SYNTHESIZER]],
    "unknown": [EXTRACT],
}
# What a thorough plan ends with, as far as it is not done before.
THOROUGH = (Role.CITATION_AUDITOR, Role.GAP_SYNTHESIZER)


class Analysis(BaseModel):
    """What a model says of a question that may need an analysis."""

    thought: str = Field(description="one sentence: what is wanted")
    complexity_score: int = Field(ge=0, le=100)
    query_type: QueryType
    vagueness_score: Unit
    is_follow_up: bool
    question: str = Field(description="the question so that it stands alone")
    needs_clarification: bool
    clarifying_questions: list[str]


class Proposal(Analysis):
    """The same with its plan."""

    steps: list[list[str]] = Field(description="names of specialists, step by step")

    @model_validator(mode="after")
    def _is_feasible(self) -> Self:
        is_simple = self.complexity_score < settings.ANALYSIS_SIMPLE and not self.steps
        asks = self.needs_clarification and not self.steps
        if not (is_simple or asks) and (problem := problem_of(self.steps)):
            raise ValueError(problem)
        return self


def default_steps(query_type: QueryType, complexity: int) -> list[list[Role]]:
    """Return the usual steps for a type of question."""
    steps = DEFAULTS[query_type]
    if complexity < settings.ANALYSIS_THOROUGH:
        return steps
    done = {role for step in steps for role in step}
    last = [role for role in THOROUGH if role not in done]
    return [*steps, last] if last else steps


def planned(proposal: Proposal) -> Plan:
    """Return the plan of a model; where it has no steps, the usual ones."""
    steps = [[Role(name) for name in step] for step in proposal.steps if step]
    if steps:
        return _plan(proposal, steps=steps)
    return usual(proposal, "")


def usual(analysis: Analysis, problem: str) -> Plan:
    """Return the usual plan for what a model says of a question; `problem` was wrong with its."""
    steps = default_steps(analysis.query_type, analysis.complexity_score)
    return _plan(analysis, steps=steps, origin="default", problem=problem)


def _plan(analysis: Analysis, **more: Any) -> Plan:
    shared = analysis.model_dump(include={"query_type", "complexity_score", "vagueness_score"})
    return Plan(**shared, **more)


def estimated(plan: Plan, choices: Mapping[str, Choice]) -> Plan:
    """Return the plan with what it may come to."""
    return plan.model_copy(update={"estimate": estimate(plan.steps, choices)})


def estimate(steps: Sequence[Sequence[Role]], choices: Mapping[str, Choice]) -> Estimate:
    """Return what the steps of a plan and its answer may come to, as such steps did lately.

    The cost is None where the price of a model is not known.
    """
    roles = [role for step in steps for role in step] + [Role.ORCHESTRATOR]
    usual_use = habits(roles)
    calls = tokens = 0
    cost: float | None = 0.0
    for role in roles:
        use = usual_use[role]
        calls += use.calls
        tokens += use.input_tokens + use.output_tokens
        prices = rates(choices[role].model) if choices[role].model else None
        if prices is None or cost is None:
            cost = None
            continue
        spent = use.input_tokens * float(prices[0]) + use.output_tokens * float(prices[1])
        cost += spent / 1_000_000
    return Estimate(
        calls=calls,
        tokens=tokens,
        cost=None if cost is None else round(cost, 6),
        is_guess=any(use.is_guess for use in usual_use.values()),
    )
