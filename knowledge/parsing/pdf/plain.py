"""Plain: headings as large as the text and no bolder, told by place, number, capitals or font."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from knowledge.parsing.pdf.lines import Line

# A line this much lower than the one before it, in lines, begins a paragraph.
APART = 1.3
# A line that ends this much before the next one does, in its widths, was the last.
SHORT = 0.25
LONGEST = 80
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"[^\W\d_]{2}")
OPEN = (".", ",", ";", ":", "!", "?", "-")
NUMBER = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s")
# Fewer numbers in a row may be a chance.
FEWEST = 3
# What more of the text than this is set in is no sign of a heading.
SELDOM = 0.1

Number = tuple[int, ...]


def plain_headings(
    lines: Sequence[Line], body: float, large: float, pitch: float
) -> dict[int, int]:
    """Return the depths, from 1, of lines that are headings, by the `id` of the line.

    Each stands alone below a gap, and is numbered in a row with others, in capitals, or in a font
    of its own. `body` is the size of the text, `large` that from which on a line needs no such
    sign, and `pitch` how far lines are below each other.
    """
    alone = [line for line in standing_alone(lines, pitch) if line.size >= body]
    rows = [(line, len(number)) for line, number in numbered(lines, alone)]
    least = min((depth for line, depth in rows if line.size < large), default=1)
    return {
        **dict.fromkeys(map(id, marked(lines, alone)), 1),
        **{id(line): depth - least + 1 for line, depth in rows if line.size < large},
    }


def leading(lines: Iterable[Line]) -> float:
    """Return how far lines mostly are below each other; 0 when there are too few to tell."""
    steps = Counter(round(2 * (one.top - two.top)) / 2 for one, two in pairwise(lines))
    return next((step for step, _ in steps.most_common() if step > 0), 0)


def standing_alone(lines: Sequence[Line], pitch: float) -> Iterator[Line]:
    """Yield the short lines with a gap above, text below, and nothing that goes on."""
    for before, line, after in zip([None, *lines], lines, lines[1:], strict=False):
        if is_short(line) and is_below(before, line, pitch) and is_above(line, after, pitch):
            yield line


def is_short(line: Line) -> bool:
    """Tell whether a line is as short as a heading, and ends like one."""
    # A gap behind the number parts no columns.
    cells = line.cells[1:] if NUMBER.fullmatch(f"{line.cells[0].text} ") else line.cells
    if len(cells) != 1 or len(line.text) > LONGEST or line.is_fixed or line.is_divided:
        return False
    return bool(WORD.search(line.text)) and not line.text.endswith(OPEN)


def is_below(before: Line | None, line: Line, pitch: float) -> bool:
    """Tell whether there is a gap above the line, or nothing in its column."""
    if before is None or before.page != line.page or before.top < line.top:
        return True
    return before.top - line.top > APART * pitch


def is_above(line: Line, after: Line, pitch: float) -> bool:
    """Tell whether text follows in the same column that does not go on with the line."""
    step = line.top - after.top
    if after.page != line.page or step <= 0:
        return False
    ends_early = line.right < after.right - SHORT * (after.right - after.left)
    return ends_early or are_apart(line, after) or step > APART * pitch


def are_apart(line: Line, after: Line) -> bool:
    """Tell whether two lines are each in a font of its own."""
    return line.font != after.font and b"" not in {line.font, after.font}


def marked(lines: Sequence[Line], alone: Sequence[Line]) -> list[Line]:
    """Return those in capitals or in a font that little else is in."""
    fonts: Counter[bytes] = Counter()
    capitals = 0
    for line in lines:
        fonts[line.font] += len(line.text)
        capitals += len(line.text) if is_capital(line) else 0
    most = SELDOM * fonts.total()
    return [
        line
        for line in alone
        if (capitals < most and is_capital(line)) or (line.font and fonts[line.font] < most)
    ]


def is_capital(line: Line) -> bool:
    """Tell whether a line is written in capitals; an abbreviation is none."""
    return line.text.isupper() and len(LETTER.findall(line.text)) > 3


def numbered(lines: Sequence[Line], alone: Iterable[Line]) -> list[tuple[Line, Number]]:
    """Return the lines whose numbers follow each other; none when they are few.

    Numbers of one depth without a word between them are a list.
    """
    listed = {
        id(line)
        for pair in pairwise(lines)
        if len(number_of(pair[0])) == len(number_of(pair[1])) > 0
        for line in pair
    }
    found: list[tuple[Line, Number]] = []
    last: Number = ()
    for line in alone:
        number = number_of(line)
        if number and id(line) not in listed and follows(last, number):
            found.append((line, number))
            last = number
    return found if len(found) >= FEWEST else []


def number_of(line: Line) -> Number:
    """Return the number a line begins with; nothing when there is none."""
    found = NUMBER.match(line.text)
    return tuple(map(int, found[1].split("."))) if found else ()


def follows(last: Number, number: Number) -> bool:
    """Tell whether a number is the next: 1, 1.1, 1.2, 2."""
    if len(number) > len(last):
        return number == (*last, 1)
    place = len(number) - 1
    return number == (*last[:place], last[place] + 1)
