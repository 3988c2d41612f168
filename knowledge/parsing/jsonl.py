"""JSONL: a document per line, as in the corpora that searches are measured on."""

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from knowledge.errors import Unreadable
from knowledge.parsing.encoding import decode
from knowledge.parsing.parsed_page import Limits, Page, as_text
from knowledge.parsing.structured import ENTRIES, explained, loaded, page, unknown

# Lines named when some cannot be read.
NAMED = 5


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the pages of a JSONL file. Raises Unreadable when no line can be read.

    A document without a source is known by its `id`. Lines that cannot be read are left out, with
    a warning on the first page.
    """
    text, warnings = decode(body)
    pages: list[Page] = []
    problems: list[str] = []
    strange: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                data = loaded(line)
                pages.append(identified(data))
                strange.update(unknown(data))
            except Unreadable as error:
                problems.append(f"line {number:,} left out: {error}".replace(" line 1,", ""))
    if problems and not pages:
        raise Unreadable(problems[0].replace(" left out", ""))
    if pages:
        more = [f"{len(problems) - NAMED:,} more lines left out"] if problems[NAMED:] else []
        noted = [*warnings, *sorted(strange), *problems[:NAMED], *more]
        pages[0] = replace(pages[0], warnings=noted)
    return pages


def identified(data: Any) -> Page:
    """Return the page of one line. Raises Unreadable."""
    try:
        (entry,) = ENTRIES.validate_python([data])
    except ValidationError as error:
        raise Unreadable(explained(error).replace("document 1, ", "", 1)) from error
    source = entry.source or as_text(data.get("id", data.get("_id")))
    return replace(page(entry, []), source=source)
