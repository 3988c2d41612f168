"""Parsing: a file's bytes into pages, one module per format."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import PurePath

from knowledge.errors import Unreadable
from knowledge.parsing.limits import Limits
from knowledge.parsing.page import Page

__all__ = ["FORMATS", "Limits", "Page", "is_readable", "parse"]

# The module that reads it, by the end of the file's name. Imported when first needed: a web
# process only wants to know what can be read.
FORMATS: dict[str, str] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "mdx",
    ".html": "html",
    ".htm": "html",
    ".txt": "text",
    ".text": "text",
    ".docx": "docx",
    ".pptx": "pptx",
    ".pdf": "pdf",
    ".json": "structured",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
# What says itself, or in its container, how its bytes are to be read.
NOT_TEXT = frozenset({"docx", "pptx", "pdf"})


def is_readable(name: str) -> bool:
    """Tell whether a file of that name is in a format known here."""
    return suffix(name) in FORMATS


def suffix(name: str) -> str:
    """Return the end of a file's name that tells its format."""
    return PurePath(name).suffix.lower()


def parse(name: str, body: bytes, limits: Limits | None = None, *, charset: str = "") -> list[Page]:
    """Return the pages of a file: one, or several from JSON and JSONL.

    `charset` is what the server that sent it says it is in. Runs in this very process: what comes
    from strangers is for `knowledge.reading`. Raises Unreadable with the reason.
    """
    if suffix(name) not in FORMATS:
        raise Unreadable(f"its format is not known; known are {', '.join(FORMATS)}")
    module, warnings = FORMATS[suffix(name)], list[str]()
    if charset and module not in NOT_TEXT:
        body, warnings = import_module(f"{__name__}.decoding").recoded(body, charset)
    try:
        pages = parser(module)(body, limits or Limits())
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    if not any(page.content.strip() for page in pages):
        raise Unreadable("there is no text in it")
    return [replace(page, warnings=[*warnings, *page.warnings]) for page in pages]


def parser(module: str) -> Callable[[bytes, Limits], list[Page]]:
    """Return what reads a format."""
    parse: Callable[[bytes, Limits], list[Page]] = import_module(f"{__name__}.{module}").parse
    return parse
