"""Vertical: pages set in columns from top to bottom, which PDFium loses or puts in another order.

It drops text that has no width, as vertical text has where its font is not in the file, and it
takes the columns as they were drawn. Such pages are read anew by pdfminer, which is too slow for
all of them.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import pairwise

import pypdfium2 as pdfium
from pdfminer.high_level import extract_pages
from pdfminer.layout import LAParams, LTChar, LTPage, LTTextBox, LTTextLine, LTTextLineVertical
from pdfminer.pdfexceptions import PDFException
from pdfminer.psexceptions import PSException
from pypdfium2 import raw

from knowledge.parsing.pdf.layout import Cell, Line

# Chinese and Japanese signs, which are the ones that are set so.
SIGN = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60]")
# Text objects with less width, in points, are dropped (kSizeEpsilon in PDFium's cpdf_textpage.cpp).
NO_WIDTH = 0.01
FORMS_DEEP = 8
# The share of text objects or signs from which a page is no horizontal one with some vertical text.
MANY = 0.25
# Signs stand as far apart as they are high: less than this share of it in width is no line of them.
NARROW = 0.6
# Spaces between the signs of a column are no spaces between words.
LAYOUT = LAParams(detect_vertical=True, word_margin=100)
# What comes of files that are not as they should be.
DAMAGED = (PDFException, PSException, ArithmeticError, AssertionError, AttributeError, LookupError,
           TypeError, ValueError)  # fmt: skip


def is_vertical(lines: Sequence[Line]) -> bool:
    """Tell whether much of a page, of which PDFium makes these lines, is vertical text."""
    signs = count_signs(lines)
    return signs > 0 and upright(lines) >= MANY * signs


def is_incomplete(page: pdfium.PdfPage, lines: Sequence[Line]) -> bool:
    """Tell whether PDFium drops many of the page's text objects; in other scripts it does not."""
    if lines and not count_signs(lines):
        return False
    lost = total = 0
    for each in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=FORMS_DEEP):
        left, _, right, _ = each.get_bounds()
        total += 1
        lost += right - left < NO_WIDTH
    return lost > MANY * total


def count_signs(lines: Sequence[Line]) -> int:
    """Return how many Chinese and Japanese signs there are in the lines."""
    return sum(len(SIGN.findall(line.text)) for line in lines)


def upright(lines: Sequence[Line]) -> int:
    """Return how many signs stand below each other, be they a line or a line each."""
    narrow = sum(
        len(SIGN.findall(line.text))
        for line in lines
        if line.right - line.left < NARROW * line.size * len(line.text)
    )
    return narrow + sum(1 for one, two in pairwise(lines) if is_stacked(one, two))


def is_stacked(one: Line, two: Line) -> bool:
    """Tell whether two lines are a sign each, the second right below the first."""
    if len(one.text) > 1 or not SIGN.match(two.text):
        return False
    is_level = abs(one.left - two.left) < 0.5 * one.size
    return is_level and 0 < one.top - two.top < 2 * one.size


def vertical_lines(body: bytes, numbers: Iterable[int]) -> Mapping[int, list[Line]]:
    """Return the lines of those pages, from 1, that turn out to be vertical, as if turned left.

    What was the right edge is then the top, so that columns are lines below each other.
    """
    wanted = sorted(numbers)
    found: dict[int, list[Line]] = {}
    # It complains of every oddity of a file.
    logging.getLogger("pdfminer").setLevel(logging.ERROR)
    places = [number - 1 for number in wanted]
    try:
        pages = extract_pages(BytesIO(body), page_numbers=places, laparams=LAYOUT)
        for number, page in zip(wanted, pages, strict=False):
            columns = [each for each in text_lines(page) if isinstance(each, LTTextLineVertical)]
            if 2 * sum(map(len_of, columns)) >= sum(map(len_of, text_lines(page))) > 0:
                found[number] = [line(each, page, number) for each in text_lines(page)]
    except DAMAGED:
        return found
    return found


def text_lines(page: LTPage) -> Iterator[LTTextLine]:
    """Yield the lines with text in the order they are read."""
    for block in page:
        if isinstance(block, LTTextBox):
            yield from (each for each in block if len_of(each))


def len_of(text_line: LTTextLine) -> int:
    """Return how many signs a line has."""
    return len(text_line.get_text().strip())


def line(text_line: LTTextLine, page: LTPage, number: int) -> Line:
    """Return a line or a column of a page turned to the left; one that is level stays so."""
    text = "".join(text_line.get_text().split())
    size = max((each.size for each in text_line if isinstance(each, LTChar)), default=0.0)
    if isinstance(text_line, LTTextLineVertical):
        left, right = page.y1 - text_line.y1, page.y1 - text_line.y0
        top, bottom = text_line.x1, text_line.x0
    else:
        text = " ".join(text_line.get_text().split())
        left, right, top, bottom = text_line.x0, text_line.x1, text_line.y1, text_line.y0
    place = ((text_line.y0 + text_line.y1) / 2 - page.y0) / (page.height or 1)
    return Line(number, [Cell(left, right, text)], top, bottom, round(2 * size) / 2, place=place)
