"""Dispatch: a file to the function that reads its format; for the process that parses.

Others only want to know what can be read, and need none of the libraries that read it.
"""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from knowledge.errors import Unreadable
from knowledge.parsing import FORMATS, Limits, Page, suffix
from knowledge.parsing.encoding import as_utf8
from knowledge.parsing.normalization import shallow

# What says itself, or in its container, how its bytes are to be read.
NOT_TEXT = frozenset({".docx", ".pptx", ".pdf", ".xlsx", ".xlsm", ".epub", ".eml", ".mbox"})


def parse(name: str, body: bytes, limits: Limits | None = None, *, charset: str = "") -> list[Page]:
    """Return the pages of a file: one, or several from JSON and JSONL.

    `charset` is what the server that sent it says it is in. Runs in this very process: what comes
    from strangers is for `knowledge.sandbox`. Raises Unreadable with the reason.
    """
    ending, warnings = suffix(name), list[str]()
    if ending not in FORMATS:
        raise Unreadable(
            f"its format is not known; known are {', '.join(FORMATS)}, and INGEST_AS can say as "
            "which of them it is to be read"
        )
    if charset and ending not in NOT_TEXT:
        body, warnings = as_utf8(body, charset)
    try:
        pages = parser(FORMATS[ending])(body, limits or Limits())
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    if not any(page.content.strip() for page in pages):
        raise Unreadable("there is no text in it")
    return [with_shallow_content(page, warnings) for page in pages]


def with_shallow_content(page: Page, warnings: list[str]) -> Page:
    """Return the page nested no deeper than whoever cuts it can bear, its warnings after those."""
    content = shallow(page.content)
    nested = [] if content == page.content else ["nested too deeply: read as less deep"]
    return replace(page, content=content, warnings=[*warnings, *page.warnings, *nested])


def parser(path: str) -> Callable[[bytes, Limits], list[Page]]:
    """Return what reads a format, such as "pdf.parse"; imported for the first such file."""
    module, _, function = path.rpartition(".")
    parse: Callable[[bytes, Limits], list[Page]] = getattr(
        import_module(f".{module}", __package__), function
    )
    return parse
