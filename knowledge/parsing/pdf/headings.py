"""Headings: which lines of a PDF are headings, and of what level."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from knowledge.parsing.pdf.lines import Line
from knowledge.parsing.pdf.plain import leading, plain_headings

# So much larger than the body is meant to be seen.
LARGER = 1.12
# Sizes this near to each other are one level.
NEAR = 0.04
LONGEST = 150
LOWEST = 6
WORD = re.compile(r"[^\W\d_]{2}")

Outline = dict[tuple[int, str], int]  # (page from 1, words of the title) → level from 1


class Headings:
    """Tells a document's headings: by its outline where it has one, else by their looks."""

    def __init__(self, lines: Sequence[Line], outline: Outline) -> None:
        self.outline = outline
        self.body = body_size(lines)
        bold = sum(len(line.text) for line in lines if line.is_bold)
        self.bold_tells = 3 * bold < sum(len(line.text) for line in lines)
        self.sizes = levels(line.size for line in lines if self.is_large(line))
        self.pitch = leading(lines) or 1.2 * self.body
        self.plain = plain_headings(lines, self.body, LARGER * self.body, self.pitch)

    def level(self, line: Line) -> int:
        """Return the level of a heading; 0 for any other line."""
        listed = self.outline.get((line.page, key(line.text)), 0)
        if listed:
            return min(listed, LOWEST)
        return min(self.seen(line), LOWEST)

    def seen(self, line: Line) -> int:
        """Return the level that a line's looks give it, which may be too low; 0 for none."""
        below = max(self.sizes.values(), default=1)
        if id(line) in self.plain and not self.is_large(line):
            return below + self.plain[id(line)]
        if len(line.text) > LONGEST or len(line.cells) > 1 or not WORD.search(line.text):
            return 0
        if self.is_large(line):
            return self.sizes[line.size]
        return below + 1 if self.is_bold(line) else 0

    def is_large(self, line: Line) -> bool:
        """Tell whether a line is set larger than the body."""
        return line.size >= LARGER * self.body

    def is_bold(self, line: Line) -> bool:
        """Tell whether a line is set in bold for a reason."""
        ends_open = line.text.endswith((".", ",", ";", ":"))
        return self.bold_tells and line.is_bold and line.size >= self.body and not ends_open


def body_size(lines: Iterable[Line]) -> float:
    """Return the size most letters are set in."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0


def levels(sizes: Iterable[float]) -> dict[float, int]:
    """Return the level of each size, 1 for the largest."""
    found: dict[float, int] = {}
    level, previous = 0, float("inf")
    for size in sorted(set(sizes), reverse=True):
        if size < (1 - NEAR) * previous:
            level, previous = level + 1, size
        found[size] = level
    return found


def key(text: str) -> str:
    """Return the words of a heading, by which an outline and a page are compared."""
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold()))
