"""Text: a file without markup."""

from knowledge.parsing.encoding import decode
from knowledge.parsing.normalization import collapsed, uniform
from knowledge.parsing.parsed_page import Limits, Page


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of a text file. Raises Unreadable."""
    text, warnings = decode(body)
    return [Page(content=collapsed(uniform(text)), warnings=warnings)]
