"""Uncited: what becomes of the statements of an answer that carry no marker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.attributes import SourceReference
from agents.documentation.context import said_by
from agents.documentation.holding import negates
from agents.documentation.particulars import missing
from agents.documentation.pieces import Piece
from agents.documentation.support import ORDER, CitationStatus, foreign, supports
from agents.terms import vocabulary, words

# Who says what documents do not say speaks of documents and of saying.
SILENT = list(vocabulary(Path(__file__).parent / "silent.txt").values())


@dataclass(frozen=True)
class Settled:
    """What was decided of one statement without a marker."""

    piece: Piece
    stays: bool = True
    marker: str = ""  # of the passage that says it
    status: CitationStatus = "unsupported"

    @property
    def counts(self) -> bool:
        """Whether it stays although nothing is known to say it."""
        return self.stays and not self.marker and self.piece.claims and not silent(self.piece.said)


def settled(
    loose: Sequence[Piece], references: Sequence[SourceReference], question: str
) -> list[Settled]:
    """Decide of each piece without a marker whether a passage says it, and whether it stays.

    What a passage supports gets its marker. What none does goes, and so does whatever names a
    number, address or code that neither passages nor question hold. It stays when it claims
    nothing, when it is the last to say what the documents do not say, and in another language,
    where words do not tell.
    """
    texts = [said_by(reference) for reference in references] or [""]
    closing = [each for each in loose if each.claims and silent(each.said)][-1:]
    claims = [each for each in loose if each.claims and not silent(each.said)]
    verdicts = iter(supports([(each.said, text) for each in claims for text in texts]))
    named = "\n\n".join([*texts, question])
    found = []
    for piece in loose:
        if piece in claims:
            found.append(_judged(piece, references, [next(verdicts) for _ in texts]))
        else:
            invents = missing(piece.said, named, names=False).numbers
            refused = piece.claims and piece not in closing
            found.append(Settled(piece, stays=not (invents or refused)))
    return found


def _judged(
    piece: Piece, references: Sequence[SourceReference], verdicts: Sequence[CitationStatus]
) -> Settled:
    status: CitationStatus = max(verdicts, key=ORDER.index)
    if status == "unsupported":
        return Settled(piece, stays=False)
    best = references[verdicts.index(status)]
    if status == "weak" and foreign(piece.said, said_by(best)):
        return Settled(piece)
    return Settled(piece, marker=best.marker, status=status)


def silent(text: str) -> bool:
    """Whether a sentence says what the documents do not say."""
    said = set(words(text))
    return negates(text) and all(said & each for each in SILENT)
