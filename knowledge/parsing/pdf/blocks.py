"""Blocks: lines of a PDF put together into headings, paragraphs, list items, tables and code."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from knowledge.parsing.pdf.headings import Headings
from knowledge.parsing.pdf.lines import Line
from knowledge.parsing.pdf.plain import APART, SHORT

BULLET = re.compile(r"[•◦▪▫‣●○■□➢►\u2013\u2014*\uf0a7\uf0b7\x84-]\s+(?=\S)")
NUMBERED = re.compile(r"\(?(?:\d{1,2}|[a-z])[.)]\s+(?=\S)")
LEADERS = re.compile(r"(?:\s?\.){4,}")
END = re.compile(r"[.!?:;\u3002\uff01\uff1f][\"'\u201d\u2019)\]]*$")

Kind = Literal["heading", "paragraph", "item", "row", "code"]


@dataclass
class Block:
    """Lines that belong together."""

    kind: Kind
    lines: list[Line] = field(default_factory=list)
    level: int = 0  # of a heading

    @property
    def page(self) -> int:
        """The page it begins on."""
        return self.lines[0].page

    @property
    def last(self) -> Line:
        """The last of its lines."""
        return self.lines[-1]


def blocks(lines: Sequence[Line], headings: Headings) -> list[Block]:
    """Return the blocks of a document, in order."""
    found: list[Block] = []
    for line in lines:
        block = begun(line, headings)
        if found and belongs(found[-1], block, headings.pitch):
            found[-1].lines.append(line)
        else:
            found.append(block)
    return found


def begun(line: Line, headings: Headings) -> Block:
    """Return the block that a line would begin."""
    if level := headings.level(line):
        return Block("heading", [line], level)
    if line.is_fixed:
        return Block("code", [line])
    if BULLET.match(line.text) or NUMBERED.match(line.text):
        return Block("item", [line])
    return Block("row" if len(line.cells) > 1 else "paragraph", [line])


def belongs(block: Block, new: Block, pitch: float) -> bool:
    """Tell whether a line goes on with a block rather than beginning one of its own."""
    line, last = new.lines[0], block.last
    step = (last.top - line.top) / pitch
    if new.kind == "item":
        return False
    if block.kind != new.kind:
        return block.kind == "item" and new.kind == "paragraph" and goes_on(block, line, step)
    if new.kind == "heading":
        return (
            new.level == block.level
            and line.size == last.size
            and 0 < step * pitch <= 1.6 * (line.size)
        )
    if new.kind in {"row", "code"}:
        return line.page == last.page and 0 < step <= 3
    return goes_on(block, line, step)


def goes_on(block: Block, line: Line, step: float) -> bool:
    """Tell whether a line is the next one of a paragraph or of an item."""
    last = block.last
    if line.page != last.page or step < 0:
        # In the next column or on the next page: nothing but the words can tell.
        return last.is_divided or (not END.search(last.text) and line.text[0].islower())
    if last.is_divided or is_beside(last, line):
        return True
    if step > APART or LEADERS.search(last.text) or is_set_apart(block, line):
        return False
    if block.kind == "item":
        return line.left > block.lines[0].left + 0.3 * line.size
    is_indented = line.left > last.left + 0.8 * line.size
    is_short = last.right < line.right - SHORT * (line.right - line.left)
    return not is_indented and not (is_short and END.search(last.text))


def is_beside(last: Line, line: Line) -> bool:
    """Tell whether a line is on one height with the last: raised figures tear lines apart."""
    is_level = abs(last.top - line.top) < 0.5 * line.size
    return is_level and -line.size < line.left - last.right < line.size


def is_set_apart(block: Block, line: Line) -> bool:
    """Tell whether the one line before is in a font of its own: a heading within the text."""
    fonts = {block.last.font, line.font}
    return len(block.lines) == 1 and len(fonts) == 2 and b"" not in fonts
