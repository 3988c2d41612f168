"""Limits: what reading one file may take."""

from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """The most one file may take; each is the setting of its name with PARSE_ before it.

    Memory and seconds are held by the process that parses, the others by the parsers.
    """

    memory_mb: int = 1024
    seconds: int = 60  # by the clock on the wall
    max_pages: int = 2000  # pages of a PDF, slides of a presentation
    max_expanded_bytes: int = 100 * MEGABYTE  # unpacked, and as the text that is produced
