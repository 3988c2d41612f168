"""Checking: holds an answer against the passages it was made from, and mends what does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.attributes import Citation, CitationStatus, SourceReference
from agents.documentation.citing import known_only, markers, normalised
from agents.documentation.context import said_by
from agents.documentation.links import Addresses, harmless
from agents.documentation.pieces import Piece, pieces, without
from agents.documentation.support import Given, Passage

# How much a statement of each status counts towards the answer's confidence.
SUPPORT: dict[CitationStatus, float] = {
    "verified": 1.0,
    "reviewed": 1.0,
    "weak": 0.75,
    "unsupported": 0.0,
}


@dataclass
class Checked:
    """An answer after the check, with what was found."""

    text: str
    citations: list[Citation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # statements that name what no passage has
    unknown: list[str] = field(default_factory=list)  # markers of passages that were not given
    uncited: list[str] = field(default_factory=list)  # statements without a marker

    @property
    def confidence(self) -> float:
        """Share of the statements that hold, 0 to 1; an uncited one does not."""
        status = {each.quote: each.citation_status for each in self.citations}
        total = len(status) + len(self.uncited)
        return sum(SUPPORT[each] for each in status.values()) / total if total else 0.0

    def findings(self) -> dict[str, Any]:
        """Return what the check took out, as JSON values."""
        return {
            "removed": self.removed,
            "removed_markers": self.unknown,
            "uncited": len(self.uncited),
        }


class Evidence:
    """The passages of an answer, taken apart once for all that it states."""

    def __init__(self, references: Sequence[SourceReference], question: str = "") -> None:
        texts = [f"{said_by(reference)}\n\n{reference.source}" for reference in references]
        self._passages = {each.marker: Passage(each.text) for each in references}
        self._given = Given(texts)
        self._asked = Given([*texts, question])

    def statuses(self, statement: str, carried: Sequence[str]) -> dict[str, CitationStatus]:
        """Return what each of the passages that a statement cites says of it."""
        if self._given.lacks(statement):
            return dict.fromkeys(carried, "unsupported")
        return {marker: self._said(statement, marker) for marker in carried}

    def source(self, statement: str) -> str:
        """Return the marker of the first passage that has a statement; empty when none has."""
        found = (marker for marker, each in self._passages.items() if each.has(statement))
        return next(found, "")

    def invented(self, statement: str) -> bool:
        """Whether a statement names what is neither in a passage nor in the question."""
        return bool(self._asked.lacks(statement))

    def _said(self, statement: str, marker: str) -> CitationStatus:
        if marker not in self._passages:
            return "unsupported"
        return "verified" if self._passages[marker].has(statement) else "weak"


def check(answer: str, references: Sequence[SourceReference], question: str = "") -> Checked:
    """Check every statement of an answer; take out what does not hold.

    Out go markers of passages that were not given or that add nothing to one that has the
    statement word for word, statements that name what no passage has, and addresses that no
    passage holds. A statement without a marker gets that of the passage that has it.
    """
    known = {reference.marker: reference for reference in references}
    unknown = [marker for marker in markers(normalised(answer)) if marker not in known]
    held = Addresses([text for r in references for text in (r.text, r.source)])
    parts = pieces(harmless(known_only(answer, known), held))
    evidence = Evidence(references, question)
    found = Checked("", unknown=unknown)
    dropped: list[Piece] = []
    for place, piece in enumerate(parts):
        if not piece.kind:
            continue
        carried = _carried(parts, place) or _given(piece, evidence)
        verdict = evidence.statuses(piece.said, carried)
        if _falls(piece, verdict, evidence):
            dropped.append(piece)
            found.removed.append(piece.said)
            continue
        for marker in verdict.keys() - (kept := _telling(verdict)).keys():
            piece.text = piece.text.replace(f"[{marker}]", "", 1)
        found.citations += [citation(known[m], piece.said, each) for m, each in kept.items()]
        if not verdict and piece.claims:
            found.uncited.append(piece.said)
    found.text = without(parts, dropped).strip()
    return found


def _given(piece: Piece, evidence: Evidence) -> list[str]:
    """Give a piece without a marker that of the passage that has it; none when none has."""
    marker = evidence.source(piece.said) if piece.claims else ""
    if marker:
        piece.cite(marker)
    return [marker] if marker else []


def _falls(piece: Piece, verdict: dict[str, CitationStatus], evidence: Evidence) -> bool:
    """Whether a piece is taken out: it names what is nowhere. Uncited, it may repeat the question.

    All of the passages of one statement say "unsupported" of it, or none.
    """
    return "unsupported" in verdict.values() if verdict else evidence.invented(piece.said)


def _telling(verdict: dict[str, CitationStatus]) -> dict[str, CitationStatus]:
    """The passages that have the statement word for word; all of them where none has."""
    return {m: each for m, each in verdict.items() if each == "verified"} or verdict


def _carried(parts: Sequence[Piece], place: int) -> list[str]:
    """The markers of a piece; code without any has those of the sentence that leads to it."""
    piece = parts[place]
    if piece.markers or piece.kind != "code":
        return piece.markers
    before = [each for each in parts[:place] if each.kind]
    return before[-1].markers if before else []


def citation(reference: SourceReference, quote: str, status: CitationStatus) -> Citation:
    """Return the citation of a passage for one statement of an answer."""
    shared = reference.model_dump(exclude={"text"})
    return Citation(quote=quote, citation_status=status, **shared)
