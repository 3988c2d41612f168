"""Layout: a PDF page as lines that know where they stand, and tables by their columns."""

import ctypes
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, takewhile
from math import hypot
from statistics import median

import pypdfium2 as pdfium
from pypdfium2 import raw

from knowledge.parsing import tables

# What PDFium puts where a word was divided at the end of a line.
HYPHEN = "\x02"
ENDS = frozenset("\r\n")
# Words further apart than this many times the size of their letters are cells of a table.
CELL_GAP = 1.6
NAME_LENGTH = 128
LAM, ALEFS = "\u0644", frozenset("\u0622\u0623\u0625\u0627")
BOLD = re.compile(rb"bold|black|heavy|semib|demi|cmbx|sfbx|bd(?:it)?$", re.IGNORECASE)
FIXED = re.compile(rb"courier|consol|mono|menlo|cmtt|typewriter", re.IGNORECASE)
BOLD_WEIGHT = 600


@dataclass(frozen=True)
class Cell:
    """Words of a line that stand close together. Lengths are in points, from the left."""

    left: float
    right: float
    text: str


@dataclass(frozen=True)
class Line:
    """A line of text. Lengths are in points, from the lower left corner of the page."""

    page: int  # from 1
    cells: Sequence[Cell]
    top: float
    bottom: float
    size: float  # of the letters
    place: float = 0.5  # its middle on the page: 0 at the bottom, 1 at the top
    font: bytes = b""  # where all of it is in one
    is_bold: bool = False
    is_fixed: bool = False  # in a font for code
    is_divided: bool = False  # its last word goes on in the next line

    @property
    def text(self) -> str:
        """All it says."""
        return " ".join(cell.text for cell in self.cells)

    @property
    def left(self) -> float:
        """Its left end."""
        return min(cell.left for cell in self.cells)

    @property
    def right(self) -> float:
        """Its right end."""
        return max(cell.right for cell in self.cells)


def lines_of(page: pdfium.PdfPage, number: int) -> list[Line]:
    """Return the lines of a page in the order PDFium reads them."""
    text = page.get_textpage()
    _, floor, _, ceiling = page.get_cropbox()
    signs = [chr(raw.FPDFText_GetUnicode(text, place)) for place in range(text.count_chars())]
    restore_arabic_order(text, signs)
    for span in spans(signs):
        if OVERPRINTED.search("".join(signs[span.start : span.stop])):
            strike_overprint(text, signs, span)
    lines = [line(text, signs, span, number) for span in spans(signs)]
    text.close()
    return [
        replace(each, place=((each.top + each.bottom) / 2 - floor) / ((ceiling - floor) or 1))
        for each in once(each for each in lines if each is not None)
    ]


def restore_arabic_order(text: pdfium.PdfTextPage, signs: list[str]) -> None:
    """Put Arabic lam and alef in order again where one glyph shows both: PDFium turns them."""
    for place, pair in enumerate(pairwise(signs)):
        if pair[0] in ALEFS and pair[1] == LAM and box(text, place) == box(text, place + 1):
            signs[place : place + 2] = reversed(pair)


# A line that may have been printed twice, letter by letter or word by word: "MMuunn", "Mun Mun".
OVERPRINTED = re.compile(r"(\S)\1(\S)\2|(\S{2,40}) ?\3")
# Letters of one line are further apart than this share of their size, however narrow they are; what
# is printed again to look bold, or as a shadow, is moved less.
STRUCK = 0.12
# Glyphs further apart are two words.
WORD_GAP = 0.2
# Lines of the same words that are less apart than this share of their size are one.
APART = 0.25


def strike_overprint(text: pdfium.PdfTextPage, signs: list[str], span: range) -> None:
    """Empty the signs of a line that another text object shows there, and part its words again.

    Printing twice makes a font look bold; PDFium finds out only where nothing stands between.
    Signs of one object at one place are those of a ligature, or a letter that is drawn in pieces.
    """
    kept: dict[str, list[Print]] = {}
    is_struck = False
    last = 0.0
    for place in span:
        if signs[place].isspace() or signs[place] == HYPHEN:
            continue
        size = letter_size(text, place) or 1.0
        new = printed(text, place)
        others = kept.setdefault(signs[place], [])
        if any(is_copy(new, other, STRUCK * size) for other in others):
            signs[place] = ""
            is_struck = True
            continue
        others.append(new)
        left, right = box(text, place)
        # PDFium looks for a gap behind the copy, which it may not find.
        if is_struck and signs[place - 1] == "" and left - last > WORD_GAP * size:
            signs[place] = f" {signs[place]}"
        last = right


Print = tuple[float, float, int | None]  # left end on its line, and the address of its text object


def printed(text: pdfium.PdfTextPage, place: int) -> Print:
    """Return where a character is set, and what text object it is of."""
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text, place, x, y)
    text_object = ctypes.cast(raw.FPDFText_GetTextObject(text, place), ctypes.c_void_p)
    return x.value, y.value, text_object.value


def is_copy(new: Print, other: Print, distance: float) -> bool:
    """Tell whether two of one sign are less than the distance apart and not of one object."""
    apart = max(abs(new[0] - other[0]), abs(new[1] - other[1]))
    return apart < distance and new[2] != other[2]


def once(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines without those that are printed over one with the same words."""
    places: dict[str, list[Line]] = {}
    for each in lines:
        others = places.setdefault(each.text, [])
        if not any(is_over(each, other) for other in others):
            others.append(each)
            yield each


def is_over(line: Line, other: Line) -> bool:
    """Tell whether a line stands where the other does."""
    apart = max(abs(line.left - other.left), abs(line.top - other.top))
    return apart < APART * line.size


def spans(signs: Sequence[str]) -> Iterator[range]:
    """Yield the places of the characters of each line, a dividing hyphen included."""
    begin = 0
    for place, sign in enumerate([*signs, "\n"]):
        if sign in ENDS:
            yield range(begin, place)
            begin = place + 1
        elif sign == HYPHEN:
            yield range(begin, place + 1)
            begin = place + 1


def line(text: pdfium.PdfTextPage, signs: Sequence[str], span: range, number: int) -> Line | None:
    """Return one line; None for one without words."""
    words = list(word_spans(signs, span))
    if not words:
        return None
    sampled = [words[0][0], words[len(words) // 2][0], words[-1][-1]]
    size = median(letter_size(text, place) for place in sampled)
    top, bottom = height(text, words[0][0])
    names = [font_name(text, place) for place in sampled]
    return Line(
        page=number,
        cells=cells(text, signs, words, size),
        top=top,
        bottom=bottom,
        size=round(2 * size) / 2,
        font=names[0] if len(set(names)) == 1 else b"",
        is_bold=all(map(BOLD.search, names))
        or all(raw.FPDFText_GetFontWeight(text, place) >= BOLD_WEIGHT for place in sampled),
        is_fixed=all(map(FIXED.search, names)),
        is_divided=signs[span[-1]] == HYPHEN,
    )


def word_spans(signs: Sequence[str], span: range) -> Iterator[range]:
    """Yield the places of the characters of each word."""
    begin = span.start
    for place in [*span, span.stop]:
        if place == span.stop or signs[place].isspace() or signs[place] == HYPHEN:
            if any(signs[begin:place]):
                yield range(begin, place)
            begin = place + 1


def cells(
    text: pdfium.PdfTextPage, signs: Sequence[str], words: Sequence[range], size: float
) -> list[Cell]:
    """Return the words put together where they stand close."""
    joined: list[Cell] = []
    for word in words:
        # Words may run from right to left.
        ends = *box(text, word[0]), *box(text, word[-1])
        left, right = min(ends), max(ends)
        text_of_word = "".join(signs[place] for place in word)
        if joined and max(left - joined[-1].right, joined[-1].left - right) <= CELL_GAP * size:
            last = joined.pop()
            left, right = min(left, last.left), max(right, last.right)
            text_of_word = f"{last.text} {text_of_word}"
        joined.append(Cell(left, right, text_of_word))
    return joined


def box(text: pdfium.PdfTextPage, place: int) -> tuple[float, float]:
    """Return where a character begins and ends."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text, place, left, right, bottom, top)
    return left.value, right.value


def height(text: pdfium.PdfTextPage, place: int) -> tuple[float, float]:
    """Return the top and the bottom of a character's line, the same for "x" and "y"."""
    rectangle = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text, place, rectangle)
    return rectangle.top, rectangle.bottom


def letter_size(text: pdfium.PdfTextPage, place: int) -> float:
    """Return the size of a character as it is seen: fonts are often set at 1 and enlarged."""
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text, place, matrix)
    return float(raw.FPDFText_GetFontSize(text, place)) * hypot(matrix.c, matrix.d)


def font_name(text: pdfium.PdfTextPage, place: int) -> bytes:
    """Return the name of the font a character is set in."""
    name = ctypes.create_string_buffer(NAME_LENGTH)
    raw.FPDFText_GetFontInfo(text, place, name, NAME_LENGTH, None)
    return name.value


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
    counts = Counter(key for lines in edges for key in {pattern(each) for each in chain(*lines)})
    least = max(FEWEST, SHARE * len(pages))
    numbered = sum(any(map(is_number, chain(*lines))) for lines in edges)

    def is_furniture(line: Line) -> bool:
        if is_number(line):
            return numbered >= 2 and 2 * numbered >= len(pages)
        return counts[pattern(line)] >= least and line.size <= 1.1 * body_size

    remaining: list[list[Line]] = []
    for page, lines in zip(pages, edges, strict=True):
        outer = {id(line) for edge in lines for line in takewhile(is_furniture, edge)}
        remaining.append([line for line in page if id(line) not in outer])
    return remaining


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


# What can name a column: short, and a word.
NAME = re.compile(r"(?=.*[^\W\d_]{2}).{1,40}")


def sentences(rows: Sequence[Line]) -> list[str]:
    """Return the rows of a table as sentences, named by the first row where it can do that."""
    widest = max(rows, key=lambda row: len(row.cells)).cells
    table = [in_columns(row.cells, widest) for row in rows]
    first = table[0]
    has_names = all(map(NAME.fullmatch, first)) and (rows[0].is_bold or len(first) > 2)
    return tables.sentences(
        [
            [tables.Cell(text, is_header=has_names and not place) for text in row]
            for place, row in enumerate(table)
        ]
    )


def in_columns(cells: Sequence[Cell], columns: Sequence[Cell]) -> list[str]:
    """Return the texts of cells, each in the column it is nearest to."""
    texts = [""] * len(columns)
    for cell in cells:
        place = min(range(len(columns)), key=lambda column: distance(cell, columns[column]))
        texts[place] = f"{texts[place]} {cell.text}".strip()
    return texts


def distance(one: Cell, other: Cell) -> float:
    """Return how far two cells are from being set under each other, to the left or the right."""
    middles = abs(one.left + one.right - other.left - other.right) / 2
    return min(abs(one.left - other.left), abs(one.right - other.right), middles)
