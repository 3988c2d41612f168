"""Refusal: the fixed first line with which a model says that it cannot answer."""

import re
from dataclasses import dataclass

from agents.attributes import Reason
from agents.documentation.citations.links import Addresses, harmless
from agents.documentation.citations.statements import normalised, without_markers

REASONS = {
    "insufficient": Reason.INSUFFICIENT_CONTEXT,
    "detail needed": Reason.MISSING_DETAILS,
}
MARKUP = r"[\s*_`#>\[\]()\"']*"
LINE = re.compile(
    rf"^{MARKUP}(?:(?P<loose>(?i:insufficient|detail needed)){MARKUP}[:\uff1a]"
    rf"|(?P<strict>INSUFFICIENT|DETAIL NEEDED)\b){MARKUP}[:\uff1a]?(?P<missing>.*)$"
)
LONGEST = 200


@dataclass(frozen=True)
class Refusal:
    """Why there is no answer, and what is missing for one, in the user's language."""

    reason: Reason
    missing: str


def refusal(line: str) -> Refusal | None:
    """Return what a line says is missing; None when it is an ordinary line."""
    match = LINE.match(line)
    if not match:
        return None
    # Without its marks first: they may keep an address apart, or hide it as code.
    text = re.sub(r"[*_`#<>]", "", without_markers(normalised(match["missing"])))
    missing = " ".join(harmless(text, Addresses([])).split())[:LONGEST]
    word = (match["loose"] or match["strict"]).casefold()
    return Refusal(REASONS[word], missing.strip(" .:\u3002"))


def may_refuse(beginning: str) -> bool:
    """Whether a line that begins so, in lower case, may still become a refusal."""
    return any(word.startswith(beginning) for word in REASONS)


def split_refusals(answer: str) -> tuple[str, Refusal | None]:
    """Return an answer without the lines that refuse, and the first of these."""
    lines = answer.splitlines()
    refusals = [refusal(line) for line in lines]
    answer_lines = [line for line, each in zip(lines, refusals, strict=True) if each is None]
    return "\n".join(answer_lines).strip(), next(filter(None, refusals), None)
