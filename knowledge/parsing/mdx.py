"""MDX: Markdown with components in it."""

from knowledge.parsing.markdown import page
from knowledge.parsing.parsed_page import Limits, Page


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of an MDX file. Raises Unreadable."""
    return [page(body, mdx=True)]
