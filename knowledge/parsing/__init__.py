"""Parsing: a file's bytes into pages, one module per format."""

from pathlib import PurePath

from knowledge.parsing.parsed_page import Limits, Page

__all__ = ["FORMATS", "Limits", "Page", "is_readable", "suffix"]

# The module of this package that reads it, by the end of the file's name.
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


def is_readable(name: str) -> bool:
    """Tell whether a file of that name is in a format known here."""
    return suffix(name) in FORMATS


def suffix(name: str) -> str:
    """Return the end of a file's name that tells its format."""
    return PurePath(name).suffix.lower()
