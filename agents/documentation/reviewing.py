"""Reviewing: what can be known of an answer without a model: markers, support, relevance."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.attributes import Citation, CitationStatus, SourceReference
from agents.contract import Writes
from agents.documentation.checking import SUPPORT, Evidence
from agents.documentation.citing import markers, normalised, without_markers
from agents.documentation.pieces import pieces
from agents.documentation.sources import without_own_list
from agents.documentation.support import within
from agents.phrases import Phrase
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
    uncited: list[str]  # statements without a marker
    unknown: list[str]  # markers nobody gave
    noted: dict[str, Any]  # what response found and took out

    @property
    def unsupported(self) -> list[str]:
        """The statements that no passage they cite says."""
        return [each.quote for each in self.statements if each.status == "unsupported"]

    @property
    def sayings(self) -> list[str]:
        """Every statement, as a reviewer is given them: the first has the number 1."""
        return [each.quote for each in self.statements] + self.uncited

    @property
    def doubted(self) -> list[str]:
        """The statements nothing vouches for."""
        return [each.quote for each in self.statements if each.status != "verified"] + self.uncited

    @property
    def open(self) -> bool:
        """Whether of most statements no rule can tell if they hold."""
        return 2 * sum(each.status == "weak" for each in self.statements) > len(self.statements)

    @property
    def support(self) -> float:
        """Mean support of the statements, 0 to 1; one without a marker has none."""
        total = sum(SUPPORT[each.status] for each in self.statements)
        count = len(self.statements) + len(self.uncited)
        return total / count if count else 0.0

    def without(self, wrong: Collection[str]) -> "Facts":
        """Return what holds when some statements were found wrong and taken out."""
        statements = [
            replace(each, status="unsupported") if each.quote in wrong else each
            for each in self.statements
        ]
        noted = self.noted | {"removed": [*self.noted.get("removed", []), *wrong]}
        uncited = [each for each in self.uncited if each not in wrong]
        return replace(self, statements=statements, uncited=uncited, noted=noted)

    def reviewed(self) -> "Facts":
        """Return what holds when a reviewer found in the passages what no rule could tell."""
        statements = [
            replace(each, status="reviewed") if each.status == "weak" else each
            for each in self.statements
        ]
        return replace(self, statements=statements)

    def refused(self) -> Writes | None:
        """Send an answer back that cites what is not there; None when all of it is."""
        sayings = self.unsupported + [f"[{marker}]" for marker in self.unknown]
        return sent_back(sayings) if sayings else None

    def result(self, **more: object) -> dict[str, Any]:
        """Return the counts as JSON values."""
        each = [statement.status for statement in self.statements]
        return self.noted | {
            "citations": len(each),
            "verified": each.count("verified"),
            "reviewed": each.count("reviewed"),
            "weak": each.count("weak"),
            "unsupported": each.count("unsupported"),
            "uncited": len(self.uncited),
            "unknown_markers": self.unknown,
            "support": round(self.support, 3),
            **more,
        }


def sent_back(sayings: Sequence[str]) -> Writes:
    """Send an answer back for what it says, each statement on a line."""
    return {"quality_decision": "regenerate", "quality_analysis": "\n".join(sayings)}


def facts(
    answer: str,
    citations: Sequence[Citation],
    references: Sequence[SourceReference],
    noted: Mapping[str, Any],
    language: str,
) -> Facts:
    """Look every citation up again rather than believe it; `noted` is what response found."""
    cited: dict[str, list[str]] = {}
    for each in citations:
        cited.setdefault(each.quote, []).append(each.marker)
    evidence = Evidence(references)
    statements = [
        Statement(quote, tuple(carried), _least(evidence.statuses(quote, carried).values()))
        for quote, carried in cited.items()
    ]
    known = {reference.marker for reference in references}
    said = markers(normalised(answer))
    unknown = [marker for marker in said if marker not in known]
    uncited = _uncited(_body(answer, language), list(cited))
    return Facts(statements, uncited, unknown, dict(noted))


def _body(answer: str, language: str) -> str:
    """The answer without what was put at its end: sources, and what the documents leave open."""
    missing = Phrase.NOT_COVERED.said_in(language, missing="\0")
    return without_own_list(answer).partition("\n\n" + missing.partition("\0")[0])[0]


def _uncited(body: str, quotes: Sequence[str]) -> list[str]:
    """The claims without a marker that are no part of what is cited."""
    claims = [each.said for each in pieces(body) if each.claims and not each.markers]
    return [each for each in claims if not any(within(each, quote) for quote in quotes)]


def _least(found: Iterable[CitationStatus]) -> CitationStatus:
    """The weakest of several verdicts: each marker promises support."""
    return min(found, key=lambda status: SUPPORT[status])


def relevance(question: str, citations: Sequence[Citation]) -> float:
    """How much of the way from unrelated to to the point the answer is, 0 to 1."""
    answer = " ".join(dict.fromkeys(without_markers(each.quote) for each in citations))
    if not question or not answer:
        return 0.0
    vectors = encode([question, answer])
    return min(1.0, max(0.0, float(vectors[0] @ vectors[1])) / TO_THE_POINT)
