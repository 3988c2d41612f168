"""Delimited: CSV and TSV, whatever stands between their cells."""

import csv
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import islice

from knowledge.errors import Unreadable
from knowledge.parsing.encoding import decode
from knowledge.parsing.normalization import clean_characters
from knowledge.parsing.parsed_page import Limits, Page
from knowledge.parsing.table_rows import Record, markdown

DELIMITERS = ",;\t|"
SAMPLE = 200  # rows that tell what stands between the cells
# Of the rows that have one width; a text with a comma here and there comes to less.
SHARE = 0.5
LEVEL = 2  # of the headings: the first is the title
LONGEST_CELL = 100_000  # characters: a quote that never ends reaches to the end of the file
SAID = "sep="  # as Excel writes in the first line


def parse(body: bytes, limits: Limits) -> list[Page]:
    """Return the rows of the file as a page. Raises Unreadable."""
    text, warnings = decode(body)
    text = clean_characters(text)
    first, _, rest = text.partition("\n")
    if first.lower().startswith(SAID) and len(first) == len(SAID) + 1:
        delimiter, text, skipped = first[-1], rest, 1
    else:
        delimiter, skipped = delimiter_of(text), 0
    content = markdown(records(text, delimiter, skipped), LEVEL, limits, room=limits.max_rows)
    return [Page(content, warnings=warnings)]


def delimiter_of(text: str) -> str:
    """Return what divides the cells: that by which most rows are equally wide, and the widest."""
    shapes = {delimiter: shape(text, delimiter) for delimiter in DELIMITERS}
    best = max(shapes, key=lambda delimiter: shapes[delimiter])
    return best if shapes[best][0] else DELIMITERS[0]


def shape(text: str, delimiter: str) -> tuple[bool, float, int]:
    """Return whether most rows have one width beyond one cell, their share, and the width."""
    try:
        rows = [row for row in islice(reader(text, delimiter), SAMPLE) if any(row)]
    except csv.Error:
        rows = []
    widths = Counter(len(row) for row in rows)
    width, count = max(widths.items(), key=lambda each: (each[1], each[0]), default=(0, 0))
    share = count / (len(rows) or 1)
    return width > 1 and share >= SHARE, round(share, 1), width


def reader(text: str, delimiter: str) -> Iterator[list[str]]:
    """Return the rows. Iterating raises csv.Error."""
    csv.field_size_limit(LONGEST_CELL)
    return csv.reader(StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)


def records(text: str, delimiter: str, skipped: int) -> Iterator[Record]:
    """Yield the rows that are not empty, `skipped` more above them. Raises Unreadable."""
    number = skipped
    rows = reader(text, delimiter)
    while True:
        number += 1
        try:
            row = next(rows, None)
        except csv.Error as error:
            raise Unreadable(f"its row {number:,} cannot be read: {error}") from error
        if row is None:
            return
        if cells := {place: cell.strip() for place, cell in enumerate(row) if cell.strip()}:
            yield Record(number, cells)
