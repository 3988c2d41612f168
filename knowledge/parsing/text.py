"""Text: a file without markup."""

from knowledge.parsing.decoding import decode
from knowledge.parsing.normalising import collapsed
from knowledge.parsing.page import Page


def parse(body: bytes) -> Page:
    """Return the page of a text file. Raises Unreadable."""
    text, warnings = decode(body)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").replace("\f", "\n\n")
    return Page(content=collapsed(text), warnings=warnings)
