"""Text: a file without markup."""

from knowledge.parsing.decoding import decode
from knowledge.parsing.limits import Limits
from knowledge.parsing.normalising import collapsed, uniform
from knowledge.parsing.page import Page


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of a text file. Raises Unreadable."""
    text, warnings = decode(body)
    return [Page(content=collapsed(uniform(text)), warnings=warnings)]
