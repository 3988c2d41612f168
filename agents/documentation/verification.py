"""Verification: what of an answer holds, looked up again, whatever a model thinks of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.attributes import Citation, CitationStatus, SourceReference
from agents.documentation.citations.check import SUPPORT, Evidence, within, words_of
from agents.documentation.citations.statements import Piece, markers, normalised, pieces
from agents.documentation.passages import without_own_list
from agents.words import Phrase


@dataclass(frozen=True)
class Statement:
    """A statement of the answer with its markers and what their passages say of it."""

    quote: str
    markers: tuple[str, ...]
    status: CitationStatus


@dataclass(frozen=True)
class Verification:
    """What holds whatever a model thinks of it."""

    statements: list[Statement]
    uncited: list[str]  # statements without a marker
    unknown: list[str]  # markers nobody gave
    findings: dict[str, Any]  # what response found and took out

    @property
    def unsupported(self) -> list[str]:
        """The statements that no passage they cite says."""
        return [each.quote for each in self.statements if each.status == "unsupported"]

    @property
    def all_statements(self) -> list[str]:
        """Every statement, as a reviewer is given them: the first has the number 1."""
        return [each.quote for each in self.statements] + self.uncited

    @property
    def doubted(self) -> list[str]:
        """The statements nothing vouches for."""
        return [each.quote for each in self.statements if each.status != "verified"] + self.uncited

    @property
    def holds(self) -> bool:
        """Whether all that is said stands in a passage word for word."""
        return bool(self.statements) and not self.doubted and not self.unknown

    @property
    def is_open(self) -> bool:
        """Whether of most statements no rule can tell if they hold."""
        return 2 * sum(each.status == "weak" for each in self.statements) > len(self.statements)

    @property
    def support(self) -> float:
        """Mean support of the statements, 0 to 1; without a marker or off topic they have none."""
        off_topic = self.findings.get("off_topic", [])
        total = sum(SUPPORT[e.status] for e in self.statements if e.quote not in off_topic)
        count = len(self.statements) + len(self.uncited)
        return total / count if count else 0.0

    @property
    def kept(self) -> float:
        """The share of what a model stated that was not taken out as said by no passage."""
        removed = len(self.findings.get("removed", []))
        count = len(self.all_statements) + removed
        return 1 - removed / count if count else 0.0

    def is_denied(self, wrong: Collection[str]) -> bool:
        """Whether most of what is called wrong stands in its passage word for word."""
        said = [each for each in self.statements if each.quote in wrong]
        return 2 * sum(each.status == "verified" for each in said) > len(wrong)

    def left(self, wrong: Collection[str]) -> "Verification":
        """Return what holds of the rest when some statements are left out."""
        statements = [each for each in self.statements if each.quote not in wrong]
        uncited = [each for each in self.uncited if each not in wrong]
        return replace(self, statements=statements, uncited=uncited)

    def without(self, wrong: Collection[str]) -> "Verification":
        """Return what holds when some statements were found wrong and taken out."""
        statements = [
            replace(statement, status="unsupported") if statement.quote in wrong else statement
            for statement in self.statements
        ]
        findings = self.findings | {"removed": [*self.findings.get("removed", []), *wrong]}
        uncited = self.left(wrong).uncited
        return replace(self, statements=statements, uncited=uncited, findings=findings)

    def reviewed(self) -> "Verification":
        """Return what holds when a reviewer found in the passages what no rule could tell."""
        statements = [
            replace(statement, status="reviewed") if statement.status == "weak" else statement
            for statement in self.statements
        ]
        return replace(self, statements=statements)

    @property
    def absent(self) -> list[str]:
        """What an answer cites and is not there: statements, and markers that nobody gave."""
        return self.unsupported + [f"[{marker}]" for marker in self.unknown]

    def result(self, **more: object) -> dict[str, Any]:
        """Return the counts as JSON values."""
        counts = [statement.status for statement in self.statements]
        return self.findings | {
            "citations": len(counts),
            "verified": counts.count("verified"),
            "reviewed": counts.count("reviewed"),
            "weak": counts.count("weak"),
            "unsupported": counts.count("unsupported"),
            "uncited": len(self.uncited),
            "unknown_markers": self.unknown,
            "support": round(self.support, 3),
            **more,
        }


def verify(
    response: str,
    citations: Iterable[Citation],
    references: Sequence[SourceReference],
    language: str,
    findings: Mapping[str, Any],
) -> Verification:
    """Look every citation of an answer up again rather than believe it.

    `findings` are what was found and taken out when the answer was checked first.
    """
    cited: dict[str, list[str]] = {}
    for citation in citations:
        cited.setdefault(citation.quote, []).append(citation.marker)
    evidence = Evidence(references, language=language)
    statements = [
        Statement(quote, tuple(carried), _least(evidence.statuses(quote, carried).values()))
        for quote, carried in cited.items()
    ]
    known = {reference.marker for reference in references}
    unknown = [marker for marker in markers(normalised(response)) if marker not in known]
    uncited = _uncited(_body(response, language), list(cited))
    return Verification(statements, uncited, unknown, dict(findings))


def _body(answer: str, language: str) -> str:
    """The answer without what was put at its end: sources, and what was left open, and why."""
    missing = Phrase.NOT_COVERED.in_language(language, missing="\0")
    undone = Phrase.ANALYSIS_INCOMPLETE.in_language(language, parts="\0")
    body = without_own_list(answer)
    for note in (missing, undone):
        body = body.partition("\n\n" + note.partition("\0")[0])[0]
    return body


def _uncited(body: str, quotes: Sequence[str]) -> list[str]:
    """The claims without a marker that are no part of what is cited."""
    claims = [each for each in pieces(body) if each.claims and not each.markers]
    return [each.statement for each in claims if not any(_is_part(each, quote) for quote in quotes)]


def _is_part(piece: Piece, quote: str) -> bool:
    """Whether a piece stands in a quote; of a row, which names its columns there, each word."""
    if piece.kind == "row":
        return set(words_of(piece.statement)) <= set(words_of(quote))
    return within(piece.statement, quote)


def _least(statuses: Iterable[CitationStatus]) -> CitationStatus:
    """The weakest of several verdicts: each marker promises support."""
    return min(statuses, key=lambda status: SUPPORT[status])
