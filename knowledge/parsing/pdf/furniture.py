"""Furniture: the lines at the edges of pages that say where one is and not what one reads."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain, takewhile

from knowledge.parsing.pdf.lines import Line

# The share of the page above and below what is printed on it.
MARGIN = 0.14
# A line is furniture when it stands on so many pages, and on this share of them.
FEWEST, SHARE = 3, 0.25
NUMBER = re.compile(
    r"\W*(?:page|seite|p\.|стр\.?|页|頁)?\s*(?:\d{1,4}|[ivxl]{1,6})"
    r"(?:\s*(?:/|of|von|de|sur|из)\s*\d{1,4})?\W*",
    re.IGNORECASE,
)

Pages = Sequence[Sequence[Line]]


def without_furniture(pages: Pages, body_size: float) -> list[list[Line]]:
    """Return the pages without headers, footers and page numbers.

    From the edge inwards, as far as lines are repeated from page to page. What is set larger than
    the body stays: a title that is repeated on every page is a title.
    """
    edges = [(top(page), bottom(page)) for page in pages]
    seen = Counter(key for lines in edges for key in {pattern(each) for each in chain(*lines)})
    least = max(FEWEST, SHARE * len(pages))
    numbered = sum(any(map(is_number, chain(*lines))) for lines in edges)

    def is_furniture(line: Line) -> bool:
        if is_number(line):
            return numbered >= 2 and 2 * numbered >= len(pages)
        return seen[pattern(line)] >= least and line.size <= 1.1 * body_size

    kept: list[list[Line]] = []
    for page, lines in zip(pages, edges, strict=True):
        outer = {id(line) for edge in lines for line in takewhile(is_furniture, edge)}
        kept.append([line for line in page if id(line) not in outer])
    return kept


def top(page: Sequence[Line]) -> list[Line]:
    """Return the lines in the upper margin, the highest first."""
    return sorted((line for line in page if line.place > 1 - MARGIN), key=lambda line: -line.top)


def bottom(page: Sequence[Line]) -> list[Line]:
    """Return the lines in the lower margin, the lowest first."""
    return sorted((line for line in page if line.place < MARGIN), key=lambda line: line.top)


def pattern(line: Line) -> str:
    """Return what stays the same of a line from page to page."""
    return re.sub(r"\d+", "0", line.text).casefold()


def is_number(line: Line) -> bool:
    """Tell whether the line is a page number."""
    return bool(NUMBER.fullmatch(line.text))
