"""Parsed page: what a parser makes of a file, and what reading one may take."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from knowledge.parsing.normalization import clean_characters, collapse_blank_lines
from knowledge.postgres_text import storable


@dataclass(frozen=True)
class Page:
    """One document as read: normalised Markdown and what the file says about itself.

    An empty field is one the file says nothing about.
    """

    content: str
    title: str = ""
    source: str = ""  # where the reader finds it, when that is not the file itself
    crumbs: list[str] = field(default_factory=list)
    description: str = ""
    summary: str = ""
    keypoints: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    audience: str = ""
    language: str = ""
    edition: str = ""  # its own version, as it names it: "2.1"
    last_updated: date | None = None
    warnings: list[str] = field(default_factory=list)
    # (line of `content` from 0, number of the page or slide that begins there), ascending; empty
    # where the format has no pages.
    starts: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make every text one that PostgreSQL can hold, whatever escapes the file used."""
        for name, value in list(vars(self).items()):
            if isinstance(value, str):
                object.__setattr__(self, name, storable(value))
            elif isinstance(value, list) and name != "starts":
                object.__setattr__(self, name, [storable(text) for text in value])


def assemble(sheets: Iterable[tuple[int, Sequence[str]]]) -> tuple[str, list[tuple[int, int]]]:
    """Return the blocks of numbered pages as one text, and where in it each page begins.

    The second is as in `Page.starts`. Pages without text begin nowhere.
    """
    lines: list[str] = []
    starts: list[tuple[int, int]] = []
    for number, blocks in sheets:
        texts = [collapse_blank_lines(clean_characters(block)) for block in blocks]
        text = "\n\n".join(block for block in texts if block)
        if text:
            lines += [""] if lines else []
            starts.append((len(lines), number))
            lines += text.split("\n")
    return "\n".join(lines), starts


def as_text(value: Any) -> str:
    """Return a scalar as one line of text, anything else as nothing."""
    return " ".join(str(value).split()) if isinstance(value, str | int | float | date) else ""


def as_list(value: Any, separator: str = ",") -> list[str]:
    """Return the texts of a list, or of a text that `separator` divides."""
    parts = value if isinstance(value, list) else as_text(value).split(separator)
    return [text for text in map(as_text, parts) if text]


def as_date(value: Any) -> date | None:
    """Return the day of a date, a time or a text that begins like one; else None."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    match = re.match(r"\d{4}-\d\d-\d\d", as_text(value))
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def as_language(value: Any) -> str:
    """Return a language tag such as "en" or "zh-cn" in lower case; nothing when it is not one."""
    tag = as_text(value).lower().replace("_", "-")
    return tag if re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8})*", tag) and len(tag) <= 16 else ""


MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """The most one file may take; each is the setting of its name with PARSE_ before it.

    Memory and seconds are held by the process that parses, the others by the parsers.
    """

    memory_mb: int = 1024
    seconds: int = 60  # of the processor
    max_pages: int = 2000  # pages of a PDF, slides of a presentation
    max_rows: int = 20_000  # of the tables of a file
    max_expanded_bytes: int = 100 * MEGABYTE  # unpacked, and as the text that is produced
