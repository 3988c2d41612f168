"""Tables: rows and columns as sentences that each make sense alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

# No table that people read is wider; a span may claim any width.
WIDEST = 256


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell, and how many rows and columns it covers."""

    text: str
    is_header: bool = False
    rows: int = 1
    columns: int = 1


EMPTY = Cell("")
Row = Sequence[Cell]


def from_texts(rows: Sequence[Sequence[str]]) -> list[list[Cell]]:
    """Return rows of plain texts as a table whose first row are headers."""
    return [[Cell(text, is_header=not place) for text in row] for place, row in enumerate(rows)]


def sentences(rows: Sequence[Row]) -> list[str]:
    """Return a table's rows as "Plan: Growth; Seats: 3". The headers name the cells.

    A cell that covers several rows is said in each, one that covers several columns once. Without
    headers the cells stand beside each other.
    """
    table = expand_spans(rows)
    count = header_rows(table)
    names = [
        " ".join(dict.fromkeys(cell.text for cell in column if cell.text))
        for column in zip(*table[:count], strict=True)
    ]
    if count == len(table):
        return ["; ".join(name for name, _ in groupby(names) if name)] if any(names) else []
    row_sentences = (sentence(row, names) for row in table[count:])
    return [text for text in row_sentences if text]


def expand_spans(rows: Sequence[Row]) -> list[list[Cell]]:
    """Return the table with a cell at each place it covers, all rows equally wide."""
    width = min(WIDEST, max((widths(rows)), default=0))
    below: dict[int, tuple[Cell, int]] = {}  # column → cell from above, rows it still covers
    table: list[list[Cell]] = []
    for row in rows:
        line: list[Cell] = []
        cells = iter(row)
        while len(line) < width:
            cell, left = below.pop(len(line), (None, 0))
            if cell is None:
                cell = next(cells, EMPTY)
                left = cell.rows
            for _ in range(max(1, cell.columns) if left == cell.rows else 1):
                if left > 1 and len(line) < width:
                    below[len(line)] = (cell, left - 1)
                line.append(cell)
        table.append(line[:width])
    return table


def widths(rows: Sequence[Row]) -> Iterator[int]:
    """Yield how many columns each row takes, with what reaches into it from above."""
    above: list[tuple[int, int]] = []  # (columns, rows left)
    for row in rows:
        yield sum(cell.columns for cell in row) + sum(columns for columns, _ in above)
        above = [(columns, left - 1) for columns, left in above if left > 1]
        above += [(cell.columns, cell.rows - 1) for cell in row if cell.rows > 1]


def header_rows(table: Sequence[Row]) -> int:
    """Return how many rows at the top hold headers and nothing else."""
    for place, row in enumerate(table):
        if not all(cell.is_header or cell is EMPTY for cell in row):
            return place
    return len(table)


def sentence(row: Row, names: Sequence[str]) -> str:
    """Return one row; headers within it name what follows them when no column has a name."""
    parts: list[str] = []
    for _, group in groupby(enumerate(row), key=lambda each: id(each[1])):
        place, cell = next(group)
        if cell.text:
            is_all = 1 < len(row) <= cell.columns
            name = names[place] if names and not is_all else ""
            parts.append(f"{name}: {cell.text}" if name else cell.text)
    if not names and len(parts) > 1 and row[0].is_header and row[0].text:
        return f"{parts[0]}: {'; '.join(parts[1:])}"
    return "; ".join(parts)
