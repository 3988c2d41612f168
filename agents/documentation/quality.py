"""Quality: checks each cited sentence against its passage and the answer against the question."""

from collections.abc import Sequence

from django.conf import settings

from agents.attributes import Citation, SourceReference
from agents.contract import View, Writes, agent
from agents.documentation.citing import markers, support, without_markers
from agents.names import Role
from agents.terms import content_words
from knowledge.embedding import encode

SUPPORT = {"verified": 1.0, "weak": 0.6, "unsupported": 0.0}
# Cosine of a question and its answer from which on the answer counts as wholly to the point:
# all-MiniLM-L6-v2.
TO_THE_POINT = 0.5


def _checked(
    citations: Sequence[Citation], references: Sequence[SourceReference]
) -> list[tuple[Citation, str]]:
    """Each citation with what its passage says of it, looked up again rather than believed."""
    texts = {reference.marker: reference.text for reference in references}
    return [(c, support(c.quote, texts.get(c.marker, ""))) for c in citations]


def _relevance(question: str, answer: str) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    if not question or not answer:
        return 0.0
    vectors = encode([question, answer])
    return min(1.0, max(0.0, float(vectors[0] @ vectors[1])) / TO_THE_POINT)


@agent(
    Role.QUALITY,
    reads=(
        "response",
        "search_context",
        "canonical_question",
        "source_references",
        "citations_used",
    ),
    writes=(
        "quality_score",
        "quality_decision",
        "quality_analysis",
        "validation_result",
        "refined_query",
    ),
)
def review(view: View) -> Writes:
    """Score support and relevance; send back what is not supported, search again what misses."""
    references = view.source_references or []
    citations = view.citations_used or []
    checked = _checked(citations, references)
    unsupported = [c.quote for c, status in checked if status == "unsupported"]
    known = {reference.marker for reference in references}
    unknown = [marker for marker in markers(view.response or "") if marker not in known]
    supported = sum(SUPPORT[s] for _, s in checked) / len(checked) if checked else 0.0
    answer = " ".join(dict.fromkeys(without_markers(c.quote) for c in citations))
    relevance = _relevance(view.canonical_question or "", answer)
    score = supported * (0.5 + 0.5 * relevance)
    writes: Writes = {
        "quality_score": score,
        "validation_result": {
            "citations": len(checked),
            "verified": sum(status == "verified" for _, status in checked),
            "weak": sum(status == "weak" for _, status in checked),
            "unsupported": len(unsupported),
            "unknown_markers": unknown,
            "support": round(supported, 3),
            "relevance": round(relevance, 3),
        },
    }
    if unsupported or unknown:
        sayings = unsupported + [f"[{marker}]" for marker in unknown]
        return writes | {
            "quality_decision": "regenerate",
            "quality_analysis": "Not in the passages: " + " | ".join(sayings),
        }
    if score >= settings.QUALITY_SCORE_THRESHOLD:
        return writes | {"quality_decision": "approve", "quality_analysis": ""}
    return writes | {
        "quality_decision": "research",
        "quality_analysis": "The answer is supported but hardly to the point.",
        "refined_query": " ".join(content_words(view.canonical_question or "")),
    }
