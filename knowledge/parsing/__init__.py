"""Parsing: a file's bytes into pages, one module per format."""

from collections.abc import Callable
from pathlib import PurePath

from knowledge.errors import Unreadable
from knowledge.parsing import html, markdown, structured, text
from knowledge.parsing.page import Page

__all__ = ["FORMATS", "Page", "is_readable", "parse"]

# What a parser is called with, by the end of the file's name.
FORMATS: dict[str, Callable[[bytes], list[Page]]] = {
    ".md": lambda body: [markdown.parse(body)],
    ".markdown": lambda body: [markdown.parse(body)],
    ".mdx": lambda body: [markdown.parse(body, mdx=True)],
    ".html": lambda body: [html.parse(body)],
    ".htm": lambda body: [html.parse(body)],
    ".txt": lambda body: [text.parse(body)],
    ".text": lambda body: [text.parse(body)],
    ".json": structured.parse,
}


def is_readable(name: str) -> bool:
    """Tell whether a file of that name is in a format known here."""
    return PurePath(name).suffix.lower() in FORMATS


def parse(name: str, body: bytes) -> list[Page]:
    """Return the pages of a file: one, or several from JSON. Raises Unreadable with the reason."""
    parser = FORMATS.get(PurePath(name).suffix.lower())
    if parser is None:
        raise Unreadable(f"its format is not known; known are {', '.join(FORMATS)}")
    pages = parser(body)
    if not any(page.content.strip() for page in pages):
        raise Unreadable("there is no text in it")
    return pages
