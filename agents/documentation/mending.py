"""Mending: takes out of an answer what a reviewer found that no passage says."""

from collections.abc import Collection

from agents.contract import View, Writes
from agents.documentation.holding import spaced
from agents.documentation.pieces import pieces, without
from agents.documentation.sources import source_list, sources_of, without_own_list
from agents.languages import ENGLISH


def mended(view: View, wrong: Collection[str]) -> Writes | None:
    """Return the answer without some of its statements; None when nothing cited is left."""
    kept = [each for each in view.citations_used or [] if each.quote not in wrong]
    if not kept:
        return None
    parts = pieces(without_own_list(view.response or ""))
    told, cited = [spaced(each) for each in wrong], {each.quote for each in kept}
    dropped = [
        each
        for each in parts
        if each.kind and each.said not in cited and any(spaced(each.said) in one for one in told)
    ]
    sources = sources_of({each.marker: each for each in kept}.values())
    body = without(parts, dropped).strip()
    return {
        "response": f"{body}\n\n{source_list(sources, view.language or ENGLISH)}",
        "citations_used": kept,
        "sources_used": sources,
    }
