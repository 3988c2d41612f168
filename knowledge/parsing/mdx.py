"""MDX: Markdown with components in it."""

from knowledge.parsing.limits import Limits
from knowledge.parsing.markdown import page
from knowledge.parsing.page import Page


def parse(body: bytes, _: Limits) -> list[Page]:
    """Return the page of an MDX file. Raises Unreadable."""
    return [page(body, mdx=True)]
