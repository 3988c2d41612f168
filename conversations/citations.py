"""Citations: what an answer relies on, as a page lists it."""

from collections.abc import Iterable
from typing import Any

from agents.attributes import Source
from agents.documentation.sources import source_list
from agents.languages import ENGLISH
from conversations.rendering import quote

MODEL = "Written by a language model from the documents it cites."
MIXED = "Partly written by a language model, partly quoted: one of the roles had no model to ask."
QUOTED = (
    "Extractive: no language model is configured; these are sentences quoted from the documents."
)
FIXED = "Extractive: no language model is configured; this reply is put together from fixed words."


def explained(mode: str, *, quotes: bool) -> str:
    """Return the sentence that tells a reader who wrote what they read."""
    if mode == "extractive":
        return QUOTED if quotes else FIXED
    return MIXED if mode == "mixed" else MODEL


def by_marker(citations: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one entry per marker, in order, with all `quotes` of the answer that carry it."""
    entries: dict[str, dict[str, Any]] = {}
    for cited in citations:
        entry = entries.setdefault(cited["marker"], {**cited, "quotes": []})
        text, status = cited["quote"], cited["citation_status"]
        entry["quotes"].append({"text": text, "html": quote(text), "status": status})
        entry["is_web"] = cited["source"].startswith(("https://", "http://"))
    return list(entries.values())


def without_list(reply: dict[str, Any]) -> str:
    """Return the text of a reply without the list of sources that response put at its end.

    For where the citations themselves are shown; a text that ends otherwise stays whole.
    """
    sources = [Source.model_validate(source) for source in reply["sources"]]
    listed = source_list(sources, reply["language"] or ENGLISH)
    return str(reply["reply"]).removesuffix(listed).rstrip()
