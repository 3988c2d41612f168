"""Extracting: an answer put together from the sentences of the passages, without a model."""

import re
from collections.abc import Sequence

from agents.attributes import SourceReference
from agents.contract import Writes
from agents.documentation.checking import Evidence, citation
from agents.documentation.choosing import choose
from agents.documentation.excerpts import Excerpt, scored
from agents.documentation.sources import source_list, sources_of
from agents.languages import ENGLISH, base
from agents.phrases import Phrase

RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+:)[^)]*\)")


def _as_said(excerpt: Excerpt, number: int) -> str:
    """The excerpt as it stands in the answer, its marker behind it."""
    # A link into the documents' own pages leads nowhere from an answer.
    text = RELATIVE_LINK.sub(r"\1", excerpt.text)
    gap = "\n" if excerpt.kind == "code" else " "
    marked = f"{text}{gap}[{excerpt.reference.marker}]"
    if excerpt.kind == "item":
        return f"{number}. {marked}" if excerpt.numbered else f"- {marked}"
    return marked


def _composed(excerpts: Sequence[Excerpt], as_list: bool) -> str:
    """The answer's body: sentences run on, lists, rows and code stand on lines of their own."""
    body = ""
    number = 0
    before: Excerpt | None = None
    for excerpt in excerpts:
        number = number + 1 if excerpt.numbered else 0
        piece = _as_said(excerpt, number)
        if as_list and excerpt.kind == "prose":
            piece = f"- {piece}"
        body += (_gap(before, excerpt, as_list) if before else "") + piece
        before = excerpt
    return body


def _gap(before: Excerpt, now: Excerpt, as_list: bool) -> str:
    prose = before.kind == now.kind == "prose"
    if prose and not as_list:
        # What leads to a list begins a paragraph.
        return " " if before.rank == now.rank and now.series < 0 else "\n\n"
    together = before.kind == now.kind or (before.series == now.series >= 0)
    return "\n" if as_list or (together and before.rank == now.rank) else "\n\n"


def extracted(
    question: str,
    references: Sequence[SourceReference],
    *,
    language: str,
    notes: Sequence[str],
    doubted: str,
) -> Writes | None:
    """Quote what answers the question, each quote cited; None when nothing does.

    `doubted` is what quality found unsupported in an answer before: that is not said again.
    """
    excerpts, scores, vectors = scored(question, references)
    chosen = [
        excerpt
        for excerpt in choose(excerpts, scores, vectors, notes)
        if excerpt.text not in doubted
    ]
    if not chosen:
        return None
    sources = sources_of(excerpt.reference for excerpt in chosen)
    parts = [_composed(chosen, "list" in notes), source_list(sources, language)]
    # Titles and quotes stay as they are; that they do is said once.
    if base(language) != ENGLISH:
        parts.insert(0, Phrase.QUOTED.said_in(language))
    evidence = Evidence(references)
    return {
        "response": "\n\n".join(parts),
        "citations_used": [
            citation(each.reference, each.text, status)
            for each in chosen
            for status in evidence.statuses(each.text, [each.reference.marker]).values()
        ],
        "sources_used": sources,
        "generation_confidence": min(1.0, max(0.0, float(scores.max()))),
        # What was found wrong with an answer before is not true of this one.
        "generation_error": "",
        "validation_result": {},
    }
