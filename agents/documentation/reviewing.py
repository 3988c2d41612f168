"""Reviewing: what can be known of an answer without a model: markers, support, relevance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.attributes import Citation, SourceReference
from agents.contract import View, Writes
from agents.documentation.checking import SUPPORT, statuses
from agents.documentation.citing import markers, normalised, without_markers
from agents.documentation.support import CitationStatus
from knowledge.embedding import encode

# Cosine of a question and its answer from which on the answer counts as wholly to the point:
# all-MiniLM-L6-v2.
TO_THE_POINT = 0.5


@dataclass(frozen=True)
class Statement:
    """A statement of the answer with its markers and what their passages say of it."""

    quote: str
    markers: tuple[str, ...]
    status: CitationStatus


@dataclass(frozen=True)
class Facts:
    """What holds whatever a model thinks of it."""

    statements: list[Statement]
    unknown: list[str]  # markers nobody gave
    noted: dict[str, Any]  # what response found and took out

    @property
    def unsupported(self) -> list[str]:
        """The statements that no passage they cite says."""
        return [each.quote for each in self.statements if each.status == "unsupported"]

    @property
    def support(self) -> float:
        """Mean support of the cited statements, 0 to 1."""
        total = sum(SUPPORT[each.status] for each in self.statements)
        return total / len(self.statements) if self.statements else 0.0

    def refused(self) -> Writes | None:
        """Send an answer back that cites what is not there; None when all of it is."""
        sayings = self.unsupported + [f"[{marker}]" for marker in self.unknown]
        if not sayings:
            return None
        return {
            "quality_decision": "regenerate",
            "quality_analysis": "Not in the passages: " + " | ".join(sayings),
        }

    def result(self, **more: object) -> dict[str, Any]:
        """Return the counts as JSON values."""
        each = [statement.status for statement in self.statements]
        return self.noted | {
            "citations": len(each),
            "verified": each.count("verified"),
            "weak": each.count("weak"),
            "unsupported": each.count("unsupported"),
            "unknown_markers": self.unknown,
            "support": round(self.support, 3),
            **more,
        }


def facts(view: View) -> Facts:
    """Look every citation up again rather than believe it."""
    references: Sequence[SourceReference] = view.source_references or []
    cited: dict[str, list[str]] = {}
    for each in _citations(view):
        cited.setdefault(each.quote, []).append(each.marker)
    verdicts = statuses(list(cited.items()), references)
    statements = [
        Statement(quote, tuple(carried), _least(list(verdict.values())))
        for (quote, carried), verdict in zip(cited.items(), verdicts, strict=True)
    ]
    known = {reference.marker for reference in references}
    said = markers(normalised(view.response or ""))
    unknown = [marker for marker in said if marker not in known]
    return Facts(statements, unknown, dict(view.validation_result or {}))


def _citations(view: View) -> Sequence[Citation]:
    return view.citations_used or []


def _least(found: Sequence[CitationStatus]) -> CitationStatus:
    """The weakest of several verdicts: each marker promises support."""
    return min(found, key=lambda status: SUPPORT[status])


def relevance(view: View) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    question = view.canonical_question or ""
    answer = " ".join(dict.fromkeys(without_markers(c.quote) for c in _citations(view)))
    if not question or not answer:
        return 0.0
    vectors = encode([question, answer])
    return min(1.0, max(0.0, float(vectors[0] @ vectors[1])) / TO_THE_POINT)
