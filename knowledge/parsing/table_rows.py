"""Table rows: those of a sheet as list items that each name their columns, a few under a heading.

"- Product: Nimbus; Price: 12.50" makes sense alone, is found by what stands in the row, and can be
shown as a table with its header again. The heading tells a citation which rows those are.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from knowledge.errors import Unreadable
from knowledge.parsing.parsed_page import Limits
from knowledge.parsing.tables import WIDEST

# Characters. About what fits the window of the embedding model with the headings above it, and
# what of a row stands in one item: more of it follows in the next, with the same first cell.
GROUP, ITEM = 600, 500
LONGEST_NAME = 60  # of a column: `tables.CELL` takes no longer one
# A stretch of rows narrower than half of its widest row has no header in that row.
HEADER_SHARE = 0.5
NUMBER = re.compile(r"[^\w]*\d[\d\s.,:/%+-]*[^\w]*(?:[A-Za-z]{1,3}\.?)?")
YEAR = re.compile(r"(?:19|20)\d\d")
# In a cell, what would be taken for the next cell.
AMBIGUOUS = re.compile(r";(?=\s[^:;]{1,60}: )")
NOTHING = "\u2013"


@dataclass(frozen=True)
class Record:
    """A row that is not empty."""

    number: int  # in the file, from 1
    cells: dict[int, str]  # by column, from 0; those that say something


def markdown(records: Iterable[Record], level: int, limits: Limits, *, room: int) -> str:
    """Return the rows as Markdown, under headings of that level.

    Rows that nothing stands between belong together, and the first of them may be their header;
    what stands alone in its row above it is a paragraph. `room` is how many rows may come. Raises
    Unreadable for too many rows or columns, or too much text.
    """
    parts: list[str] = []
    header: dict[int, str] = {}
    length = 0
    for stretch in stretches(bounded(records, room, limits)):
        lead, rest = introduction(stretch)
        parts += [" ".join(" ".join(each.cells.values()).split()) for each in lead]
        if rest and is_header(rest[0], rest):
            header, rest = names(rest[0].cells), rest[1:]
        for heading, items in groups(rest, columns(header, rest)):
            text = f"{'#' * level} {heading}\n\n" + "\n".join(items)
            length += len(text)
            if length > limits.max_expanded_bytes:
                raise Unreadable(
                    f"it comes to more than {limits.max_expanded_bytes:,} bytes of text "
                    "(PARSE_MAX_EXPANDED_BYTES)"
                )
            parts.append(text)
    return "\n\n".join(part for part in parts if part)


def bounded(records: Iterable[Record], room: int, limits: Limits) -> Iterator[Record]:
    """Yield the rows. Raises Unreadable when they are too many, or one is too wide."""
    for count, record in enumerate(records, start=1):
        if count > room:
            raise Unreadable(
                f"it has more than {limits.max_rows:,} rows (PARSE_MAX_ROWS): divide it, or leave "
                "out what nobody asks about"
            )
        if len(record.cells) > WIDEST:
            raise Unreadable(
                f"its row {record.number:,} has {len(record.cells):,} columns, and at most "
                f"{WIDEST} are read: leave out those that nobody asks about"
            )
        yield record


def stretches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the rows that follow each other without an empty one between."""
    for _, group in groupby(enumerate(records), key=lambda each: each[1].number - each[0]):
        yield [record for _, record in group]


def introduction(stretch: Sequence[Record]) -> tuple[Sequence[Record], Sequence[Record]]:
    """Return the rows with a single cell that stand above wider ones, or alone; and the others."""
    widest = max(len(record.cells) for record in stretch)
    if widest == len(stretch) == 1:
        return stretch, []
    first = next(place for place, each in enumerate(stretch) if len(each.cells) > 1 or widest == 1)
    return stretch[:first], stretch[first:]


def is_header(record: Record, stretch: Sequence[Record]) -> bool:
    """Tell whether a row names the columns of those below: texts that hardly repeat each other.

    A number is no name, but years may be beside one.
    """
    texts = [text.casefold() for text in record.cells.values()]
    widest = max(len(each.cells) for each in stretch)
    numbers = [text for text in texts if NUMBER.fullmatch(text)]
    return (
        len(stretch) > 1
        and len(texts) >= HEADER_SHARE * widest
        and len(set(texts)) > len(texts) / 2
        and len(numbers) < len(texts)
        and all(map(YEAR.fullmatch, numbers))
    )


def names(cells: dict[int, str]) -> dict[int, str]:
    """Return what a header calls its columns: on a line, without what ends a name in an item."""
    return {column: column_name(text) for column, text in cells.items()}


def column_name(text: str) -> str:
    """Return a column's name."""
    name = " ".join(re.sub(r"[:;]+", " ", text).split())
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1].rstrip() + "\u2026"


def columns(header: dict[int, str], records: Sequence[Record]) -> dict[int, str]:
    """Return the name of every column that the rows have, by its place; no name twice."""
    used = sorted({*header, *(column for record in records for column in record.cells)})
    found: dict[int, str] = {}
    for column in used:
        name = header.get(column) or f"Column {letters(column)}"
        found[column] = name if name not in found.values() else f"{name} ({letters(column)})"
    return found


def letters(column: int) -> str:
    """Return what a spreadsheet calls a column: A to Z, AA and so on."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def groups(records: Sequence[Record], columns: dict[int, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield headings such as "Rows 2 to 9" with the items of these rows."""
    rows: list[tuple[int, list[str]]] = []
    size = 0
    for record in records:
        items = list(sentences(record, columns))
        length = sum(map(len, items))
        if rows and size + length > GROUP:
            yield group(rows)
            rows, size = [], 0
        rows.append((record.number, items))
        size += length
    if rows:
        yield group(rows)


def group(rows: Sequence[tuple[int, list[str]]]) -> tuple[str, list[str]]:
    """Return the heading of these rows, and their items."""
    first, last = rows[0][0], rows[-1][0]
    heading = f"Row {first}" if first == last else f"Rows {first}\u2013{last}"
    return heading, [item for _, items in rows for item in items]


def sentences(record: Record, columns: dict[int, str]) -> Iterator[str]:
    """Yield a row as an item, or as several that begin with the same cell where it is long."""
    first = min(columns)
    key = f"{columns[first]}: {cell_text(record.cells.get(first, '')) or NOTHING}"[:ITEM]
    current, is_empty = f"- {key}", True
    for column, name in columns.items():
        if column == first:
            continue
        for number, part in enumerate(wrap(cell_text(record.cells.get(column, "")), ITEM)):
            cell = f"; {name}{' (continued)' if number else ''}: {part}"
            if len(current) + len(cell) > ITEM and not is_empty:
                yield current
                current = f"- {key}"
            current += cell
            is_empty = False
    yield current


def cell_text(text: str) -> str:
    """Return what a cell says on one line, none of it to be taken for another cell."""
    return AMBIGUOUS.sub(",", " ".join(text.split()))
