"""Evaluator: judges whether the passages found answer the question."""

from collections.abc import Sequence

from django.conf import settings
from pydantic import BaseModel

from agents.attributes import (
    Evaluation,
    Passage,
    Reason,
    SearchStats,
    TriedSearch,
    Unit,
)
from agents.contract import View, Writes, llm_agent
from agents.documentation.passages import absent, fitting, heading, unmentioned
from agents.llm.model import Model
from agents.names import Role
from agents.words import content_words, list_languages
from knowledge.search.confidence import EXCELLENT
from prompts.prompt import Block, Prompt

PROMPT = Prompt("evaluator", "question", "wishes", "tried", "passages", "languages")
# The best passages come with what stands around them in their section; the answer is seldom in
# those behind them.
SHOWN = 3
# Where search measured no confidence: cosines of a question with a passage that is about it, and
# with one that is not, of all-MiniLM-L6-v2.
NEAR = 0.5
FAR = 0.25
# This share of the question's terms has to appear for an answer to be expected.
COVERED = 0.6
# Characters of what a model says is missing, and of the query it would search with.
LONGEST = 300


class Findings(View):
    """What the evaluator reads: the question, its wishes, and what was searched for and found."""

    canonical_question: str = ""
    response_notes: list[str] = []
    tried_searches: list[TriedSearch] = []
    search_results: list[Passage] = []
    search_stats: SearchStats = {}


class Verdict(BaseModel):
    """What the model says of the passages; what is missing comes before the verdict."""

    missing: str
    usable: bool
    sufficient: bool
    refined_query: str
    confidence: Unit


@llm_agent(Role.EVALUATOR, reads=Findings, writes=("evaluation", "refined_query", "limitations"))
def evaluate(view: Findings, llm: Model) -> Writes:
    """Let the model say whether the passages answer the question, and what is missing."""
    passages = fitting(view.search_results, settings.MAX_CONTEXT_LENGTH)[:SHOWN]
    if not passages:
        return coverage(view)
    question = view.canonical_question
    verdict = llm.ask(
        PROMPT,
        Verdict,
        documents=tuple(p.document_id for p in passages),
        question=question,
        wishes=[Block("wish", each) for each in view.response_notes],
        tried=[
            Block("tried", f"{each.query}\n{each.missing}".strip()) for each in view.tried_searches
        ],
        passages=[Block("passage", f"{heading(p)}\n{p.text}") for p in passages],
        languages=list_languages(p.language for p in passages),
    )
    missing = verdict.missing.strip()[:LONGEST]
    refined = verdict.refined_query.strip()[:LONGEST]
    evaluation = Evaluation(
        sufficient=verdict.sufficient, missing=missing, confidence=verdict.confidence
    )
    return {
        "evaluation": evaluation,
        "limitations": [missing] if missing else [],
        "refined_query": "" if verdict.sufficient else refined or " ".join(content_words(question)),
    } | _request(usable=verdict.usable or verdict.sufficient)


@evaluate.without_model
def coverage(view: Findings) -> Writes:
    """What no passage mentions is missing; how much is there decides whether it is enough."""
    question = view.canonical_question
    passages = view.search_results
    words = content_words(question)
    missing = unmentioned(question, passages)
    covered = 1 - len(absent(question, passages)) / len(words) if words else 0.0
    nearness, is_far = _distance(passages, view.search_stats)
    sufficient = bool(passages) and (nearness >= 1 or (covered >= COVERED and not is_far))
    confidence = min(1.0, max(0.0, 0.5 * covered + 0.5 * min(1.0, nearness)))
    return {
        "evaluation": Evaluation(
            sufficient=sufficient, missing=", ".join(missing), confidence=confidence
        ),
        "limitations": missing,
        "refined_query": "" if sufficient else " ".join(words),
    } | _request(usable=bool(passages))


def _distance(passages: Sequence[Passage], stats: SearchStats) -> tuple[float, bool]:
    """How near the passages are to the question, 1 or more: they are about it; and if they are not.

    Search's own confidence against the threshold of the collection says it best.
    """
    confidence, threshold = stats.get("confidence"), stats.get("threshold")
    if confidence is None or threshold is None:
        cosine = max((p.cosine for p in passages if p.cosine is not None), default=0.0)
        return cosine / NEAR, cosine < FAR
    return 1 + (confidence - threshold) / EXCELLENT, confidence < threshold


def _request(*, usable: bool) -> Writes:
    """Ask the user when nothing usable was found; another round of search comes before that."""
    request: Writes = {"needs_clarification": not usable}
    return request if usable else request | {"clarification_reason": Reason.INSUFFICIENT_CONTEXT}
