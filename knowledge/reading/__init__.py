"""Reading: files into pages in a process of its own, which a hostile file may bring down.

    with Reader() as reader:
        pages, notes = reader.read("manual.pdf", body)

A process with limits on memory, time, open files and written bytes parses; this one only hears
what came of it. `read` raises `knowledge.errors.Unreadable` with the reason whatever happens to
the file, and ParserUnavailable when there is no such process to be had.
"""

from knowledge.reading.process import ParserUnavailable
from knowledge.reading.reader import Reader

__all__ = ["ParserUnavailable", "Reader"]
