"""Evaluator: judges whether the passages found answer the question."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agents.attributes import Evaluation, Passage, Reason
from agents.contract import View, Writes, llm_agent
from agents.documentation.context import heading
from agents.llm.model import Model
from agents.names import Role
from agents.terms import content_words, stem, terms
from prompts.prompt import Block, Prompt

PROMPT = Prompt("evaluator", "question", "passages")

# Cosines of a question with a passage that is about it, and with one that is not: all-MiniLM-L6-v2.
NEAR = 0.5
FAR = 0.25
# This share of the question's terms has to appear for an answer to be expected.
COVERED = 0.6


def _missing(question: str, passages: Sequence[Passage]) -> list[str]:
    """The words of the question that no passage mentions, as the user wrote them."""
    mentioned = {term for p in passages for term in terms(f"{p.title} {p.section} {p.text}")}
    words = dict.fromkeys(content_words(question))
    return [word for word in words if stem(word) not in mentioned]


def _nearest(passages: Sequence[Passage]) -> float:
    return max((p.cosine for p in passages if p.cosine is not None), default=0.0)


class Verdict(BaseModel):
    """What the model says of the passages."""

    sufficient: bool
    missing: str
    refined_query: str = Field(max_length=400)
    confidence: float = Field(ge=0, le=1)


@llm_agent(
    Role.EVALUATOR,
    reads=("canonical_question", "search_results", "search_stats"),
    writes=("evaluation", "refined_query", "limitations"),
)
def evaluate(view: View, llm: Model) -> Writes:
    """Let the model say whether the passages answer the question, and what is missing."""
    passages = view.search_results or []
    if not passages:
        return coverage(view)
    verdict = llm.ask(
        PROMPT,
        Verdict,
        documents=tuple(p.document_id for p in passages),
        question=view.canonical_question or "",
        passages=[Block("passage", f"{heading(p)}\n{p.text}") for p in passages],
    )
    return {
        "evaluation": Evaluation(
            sufficient=verdict.sufficient, missing=verdict.missing, confidence=verdict.confidence
        ),
        "limitations": [verdict.missing] if verdict.missing else [],
        "refined_query": "" if verdict.sufficient else verdict.refined_query,
    }


@evaluate.without_model
def coverage(view: View) -> Writes:
    """What no passage mentions is missing; how much is there decides whether it is enough."""
    question = view.canonical_question or ""
    passages = view.search_results or []
    words = content_words(question)
    missing = _missing(question, passages)
    covered = 1 - len(missing) / len(words) if words else 0.0
    nearest = _nearest(passages)
    sufficient = bool(passages) and (nearest >= NEAR or (covered >= COVERED and nearest >= FAR))
    usable = bool(passages) and (nearest >= FAR or covered >= COVERED)
    confidence = min(1.0, max(0.0, 0.5 * covered + 0.5 * nearest / NEAR))
    writes: Writes = {
        "evaluation": Evaluation(
            sufficient=sufficient, missing=", ".join(missing), confidence=confidence
        ),
        "limitations": missing,
        "refined_query": "" if sufficient else " ".join(words),
        "needs_clarification": not usable,
    }
    if not usable:
        writes["clarification_reason"] = Reason.INSUFFICIENT_CONTEXT
    return writes
