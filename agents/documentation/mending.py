"""Mending: takes out of an answer what a reviewer found that no passage says."""

from collections.abc import Collection, Sequence

from agents.attributes import Citation
from agents.contract import Writes
from agents.documentation.holding import spaced
from agents.documentation.pieces import pieces, without
from agents.documentation.sources import source_list, sources_of, without_own_list


def mended(
    answer: str, citations: Sequence[Citation], wrong: Collection[str], language: str
) -> Writes | None:
    """Return the answer without some of its statements; None when nothing cited is left."""
    kept = [each for each in citations if each.quote not in wrong]
    if not kept:
        return None
    parts = pieces(without_own_list(answer))
    told, cited = [spaced(each) for each in wrong], {each.quote for each in kept}
    dropped = [
        each
        for each in parts
        if each.kind and each.said not in cited and any(spaced(each.said) in one for one in told)
    ]
    sources = sources_of({each.marker: each for each in kept}.values())
    body = without(parts, dropped).strip()
    return {
        "response": f"{body}\n\n{source_list(sources, language)}",
        "citations_used": kept,
        "sources_used": sources,
    }
