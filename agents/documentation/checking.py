"""Checking: holds an answer against the passages it was made from, and mends what does not hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.attributes import Citation, SourceReference
from agents.documentation.citing import known_only, markers, normalised
from agents.documentation.context import said_by
from agents.documentation.links import Addresses, harmless
from agents.documentation.pieces import Piece, pieces, without
from agents.documentation.support import ORDER, CitationStatus, supports
from agents.documentation.uncited import Settled, settled

# How much a statement of each status counts towards the answer's confidence.
SUPPORT: dict[CitationStatus, float] = {"verified": 1.0, "weak": 0.75, "unsupported": 0.0}


@dataclass
class Checked:
    """An answer after the check, with what was found."""

    text: str
    citations: list[Citation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # statements no passage supports
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


def check(answer: str, references: Sequence[SourceReference], question: str = "") -> Checked:
    """Check every statement of an answer; take out what does not hold.

    Out go markers of passages that were not given, statements no passage supports, and addresses
    that no passage holds. A statement without a marker gets that of the passage that supports it.
    """
    known = {reference.marker: reference for reference in references}
    unknown = [marker for marker in markers(normalised(answer)) if marker not in known]
    held = Addresses([text for r in references for text in (r.text, r.source)])
    parts = pieces(harmless(known_only(answer, known), held))
    stating = [(piece, _carried(parts, place)) for place, piece in enumerate(parts) if piece.kind]
    judged = iter(statuses([(p.said, carried) for p, carried in stating if carried], references))
    loose = iter(settled([p for p, carried in stating if not carried], references, question))
    found = Checked("", unknown=unknown)
    dropped: list[Piece] = []
    for piece, carried in stating:
        verdict = next(judged) if carried else _given(next(loose), found)
        held_by = {marker: status for marker, status in verdict.items() if status != "unsupported"}
        if verdict and not held_by:
            dropped.append(piece)
            found.removed.append(piece.said)
            continue
        for marker in verdict.keys() - held_by.keys():
            piece.text = piece.text.replace(f"[{marker}]", "", 1)
        found.citations += [citation(known[m], piece.said, each) for m, each in held_by.items()]
    found.text = without(parts, dropped).strip()
    return found


def _given(decided: Settled, found: Checked) -> dict[str, CitationStatus]:
    """The verdict of a statement without a marker, which may get one; empty: it stays as it is."""
    if decided.marker:
        decided.piece.cite(decided.marker)
        return {decided.marker: decided.status}
    if decided.counts:
        found.uncited.append(decided.piece.said)
    return {} if decided.stays else {"": "unsupported"}


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


def statuses(
    statements: Sequence[tuple[str, Sequence[str]]], references: Sequence[SourceReference]
) -> list[dict[str, CitationStatus]]:
    """Return for each (statement, its markers) what each of its passages says of it.

    Where several passages together hold more than any of them alone, each has what they hold
    together. A passage that adds nothing stays "unsupported".
    """
    texts = {reference.marker: said_by(reference) for reference in references}
    pairs: list[tuple[str, str]] = []
    for statement, carried in statements:
        held = [texts.get(marker, "") for marker in carried]
        pairs += [(statement, text) for text in held]
        pairs += [(statement, "\n\n".join(held))] if len(held) > 1 else []
    verdicts = iter(supports(pairs))
    found = []
    for _, carried in statements:
        alone = {marker: next(verdicts) for marker in carried}
        together = next(verdicts) if len(alone) > 1 else "unsupported"
        better = all(ORDER.index(together) > ORDER.index(each) for each in alone.values())
        found.append(dict.fromkeys(alone, together) if better and len(alone) > 1 else alone)
    return found
