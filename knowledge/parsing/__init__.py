"""Parsing: a file's bytes into pages, each format by a function of its module."""

from pathlib import PurePath

from knowledge.parsing.parsed_page import Limits, Page

__all__ = ["FORMATS", "WORDS", "Limits", "Page", "is_readable", "suffix"]

# What reads a file, in this package, by the end of the file's name.
FORMATS: dict[str, str] = {
    ".md": "markdown.parse",
    ".markdown": "markdown.parse",
    ".mdx": "markdown.parse_mdx",
    ".html": "html.parse",
    ".htm": "html.parse",
    ".txt": "markdown.parse_text",
    ".text": "markdown.parse_text",
    ".rst": "rst.parse",
    ".adoc": "asciidoc.parse",
    ".asciidoc": "asciidoc.parse",
    ".csv": "delimited.parse",
    ".tsv": "delimited.parse",
    ".xlsx": "xlsx.parse",
    ".xlsm": "xlsx.parse",
    ".docx": "docx.parse",
    ".pptx": "pptx.parse",
    ".pdf": "pdf.parse",
    ".epub": "epub.parse",
    ".eml": "mail.parse",
    ".mbox": "mail.parse_mbox",
    ".json": "json_documents.parse",
    ".jsonl": "json_documents.parse_lines",
    ".ndjson": "json_documents.parse_lines",
}

# What a rule for other files calls a format (INGEST_AS), and how names of such files end.
WORDS = {
    "asciidoc": ".adoc", "csv": ".csv", "html": ".html", "json": ".json", "jsonl": ".jsonl",
    "mail": ".eml", "markdown": ".md", "mdx": ".mdx", "rst": ".rst", "text": ".txt", "tsv": ".tsv",
}  # fmt: skip


def is_readable(name: str) -> bool:
    """Tell whether a file of that name is in a format known here."""
    return suffix(name) in FORMATS


def suffix(name: str) -> str:
    """Return the end of a file's name that tells its format."""
    return PurePath(name).suffix.lower()
