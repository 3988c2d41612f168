"""Evaluator: judges whether the passages found answer the question."""

from collections.abc import Sequence

from agents.attributes import Evaluation, Passage, Reason
from agents.contract import View, Writes, agent
from agents.names import Role
from agents.terms import content_words, stem, terms

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


@agent(
    Role.EVALUATOR,
    reads=("canonical_question", "search_results", "search_stats"),
    writes=("evaluation", "refined_query", "limitations"),
)
def evaluate(view: View) -> Writes:
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
