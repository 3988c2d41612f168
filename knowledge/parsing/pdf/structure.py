"""Structure: lines of a PDF as headings, paragraphs, list items, tables and code in Markdown."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Literal

from knowledge.parsing.pdf.layout import Line, sentences

# So much larger than the body is meant to be seen.
LARGER = 1.12
# Sizes this near to each other are one level.
NEAR = 0.04
LONGEST_HEADING = 150
LOWEST = 6

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
        bookmark_level = self.outline.get((line.page, key(line.text)), 0)
        if bookmark_level:
            return min(bookmark_level, LOWEST)
        return min(self.level_by_looks(line), LOWEST)

    def level_by_looks(self, line: Line) -> int:
        """Return the level that a line's looks give it, which may be too low; 0 for none."""
        below = max(self.sizes.values(), default=1)
        if id(line) in self.plain and not self.is_large(line):
            return below + self.plain[id(line)]
        if len(line.text) > LONGEST_HEADING or len(line.cells) > 1 or not WORD.search(line.text):
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
    levels_by_size: dict[float, int] = {}
    level, previous = 0, float("inf")
    for size in sorted(set(sizes), reverse=True):
        if size < (1 - NEAR) * previous:
            level, previous = level + 1, size
        levels_by_size[size] = level
    return levels_by_size


def key(text: str) -> str:
    """Return the words of a heading, by which an outline and a page are compared."""
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold()))


# A line this much lower than the one before it, in lines, begins a paragraph.
APART = 1.3
# A line that ends this much before the next one does, in its widths, was the last.
SHORT = 0.25
LONGEST_PLAIN = 80
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
        **dict.fromkeys(map(id, conspicuous(lines, alone)), 1),
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
    if len(cells) != 1 or len(line.text) > LONGEST_PLAIN or line.is_fixed or line.is_divided:
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


def conspicuous(lines: Sequence[Line], alone: Sequence[Line]) -> list[Line]:
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
    sequence: list[tuple[Line, Number]] = []
    last: Number = ()
    for line in alone:
        number = number_of(line)
        if number and id(line) not in listed and follows(last, number):
            sequence.append((line, number))
            last = number
    return sequence if len(sequence) >= FEWEST else []


def number_of(line: Line) -> Number:
    """Return the number a line begins with; nothing when there is none."""
    match = NUMBER.match(line.text)
    return tuple(map(int, match[1].split("."))) if match else ()


def follows(last: Number, number: Number) -> bool:
    """Tell whether a number is the next: 1, 1.1, 1.2, 2."""
    if len(number) > len(last):
        return number == (*last, 1)
    place = len(number) - 1
    return number == (*last[:place], last[place] + 1)


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
    sequence: list[Block] = []
    for line in lines:
        block = new_block(line, headings)
        if sequence and continues_block(sequence[-1], block, headings.pitch):
            sequence[-1].lines.append(line)
        else:
            sequence.append(block)
    return sequence


def new_block(line: Line, headings: Headings) -> Block:
    """Return the block that a line would begin."""
    if level := headings.level(line):
        return Block("heading", [line], level)
    if line.is_fixed:
        return Block("code", [line])
    if BULLET.match(line.text) or NUMBERED.match(line.text):
        return Block("item", [line])
    return Block("row" if len(line.cells) > 1 else "paragraph", [line])


def continues_block(block: Block, new: Block, pitch: float) -> bool:
    """Tell whether a line goes on with a block rather than beginning one of its own."""
    line, last = new.lines[0], block.last
    step = (last.top - line.top) / pitch
    if new.kind == "item":
        return False
    if block.kind != new.kind:
        return (
            block.kind == "item" and new.kind == "paragraph" and continues_text(block, line, step)
        )
    if new.kind == "heading":
        return (
            new.level == block.level
            and line.size == last.size
            and 0 < step * pitch <= 1.6 * (line.size)
        )
    if new.kind in {"row", "code"}:
        return line.page == last.page and 0 < step <= 3
    return continues_text(block, line, step)


def continues_text(block: Block, line: Line, step: float) -> bool:
    """Tell whether a line is the next one of a paragraph or of an item."""
    last = block.last
    if line.page != last.page or step < 0:
        # In the next column or on the next page: nothing but the words can tell.
        return last.is_divided or (not END.search(last.text) and line.text[0].islower())
    if last.is_divided or is_beside(last, line):
        return True
    if step > APART or LEADERS.search(last.text) or is_in_own_font(block, line):
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


def is_in_own_font(block: Block, line: Line) -> bool:
    """Tell whether the one line before is in a font of its own: a heading within the text."""
    fonts = {block.last.font, line.font}
    return len(block.lines) == 1 and len(fonts) == 2 and b"" not in fonts


HYPHENATED_WORD = re.compile(r"\w+(?:-\w+)*")
# Chinese and Japanese have no spaces between words.
UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uff5f]{2}")
# Of a letter in a font for code, beside its size.
LETTER_WIDTH = 0.6


class Writer:
    """Writes blocks; knows a document's words, to tell a hyphen from a division."""

    def __init__(self, lines: Iterable[Line]) -> None:
        words_of_lines = (HYPHENATED_WORD.findall(line.text.casefold()) for line in lines)
        self.words = Counter(word for words in words_of_lines for word in words)

    def pages(self, blocks: Sequence[Block]) -> Iterator[tuple[int, list[str]]]:
        """Yield (number, texts) for each page; a block is on the page it begins on."""
        for page, on_page in groupby(blocks, key=lambda block: block.page):
            texts: list[str] = []
            for is_list, group in groupby(on_page, key=lambda block: block.kind == "item"):
                paragraphs = [self.markdown(block) for block in group]
                texts += ["\n".join(paragraphs)] if is_list else paragraphs
            yield page, texts

    def markdown(self, block: Block) -> str:
        """Return one block as Markdown."""
        if block.kind == "row" and len(block.lines) > 1:
            return "\n".join(f"- {each}" for each in sentences(block.lines))
        if block.kind == "code":
            return f"```\n{code(block.lines)}\n```"
        text = LEADERS.sub(" …", self.running_text(block.lines))
        if block.kind == "heading":
            return f"{'#' * block.level} {text}"
        return BULLET.sub("- ", text, count=1) if block.kind == "item" else text

    def running_text(self, lines: Sequence[Line]) -> str:
        """Return lines as one, divided words put together."""
        text = lines[0].text
        for before, line in pairwise(lines):
            if before.is_divided:
                text = self.join_word(text, line.text)
            elif re.search(r"\w-$", text) and line.text[0].islower():
                text = self.join_word(text[:-1], line.text)
            else:
                text += f"{'' if UNSPACED.fullmatch(text[-1] + line.text[0]) else ' '}{line.text}"
        return text

    def join_word(self, before: str, after: str) -> str:
        """Return two halves of a word as one, with a hyphen where it is written so elsewhere."""
        left, right = re.search(r"\w*$", before), re.match(r"\w*", after)
        halves = [half[0].casefold() for half in (left, right) if half]
        has_hyphen = self.words["-".join(halves)] > self.words["".join(halves)]
        return f"{before}{'-' if has_hyphen else ''}{after}"


def code(lines: Sequence[Line]) -> str:
    """Return lines of code, indented as they stand."""
    margin = min(line.left for line in lines)
    return "\n".join(
        " " * round((line.left - margin) / (LETTER_WIDTH * (line.size or 1))) + line.text
        for line in lines
    )
