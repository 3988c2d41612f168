"""Tables: rows and columns as sentences that each make sense alone, and those as a table again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from knowledge.sentences import ITEM

# No table that people read is wider; a span may claim any width.
WIDEST = 256


# A cell of a row that was made a sentence: "City: London".
CELL = re.compile(r"^([^:;]{1,60}): (.+)$", re.DOTALL)
FEWEST_CELLS = 2
BULLET = re.compile(r"^[-*+]\s+")


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
        if text := on_one_line(cell.text):
            is_all = 1 < len(row) <= cell.columns
            name = names[place] if names and not is_all else ""
            parts.append(f"{name}: {text}" if name else text)
    if not names and len(parts) > 1 and row[0].is_header and row[0].text:
        return f"{parts[0]}: {'; '.join(parts[1:])}"
    return "; ".join(parts)


def on_one_line(text: str) -> str:
    """Return what a cell says without line breaks; the items of a list in it by commas."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    gap = ", " if any(map(BULLET.match, lines)) else " "
    return gap.join(BULLET.sub("", line) for line in lines)


def rendered(items: Sequence[str]) -> str | None:
    """Return list items as a Markdown table; None when they are not the rows of one.

    Rows have two cells or more, and all begin with the same column.
    """
    rows = [cells(ITEM.sub("", item)) for item in items]
    firsts = {next(iter(row), None) for row in rows}
    if len(firsts) != 1 or any(len(row) < FEWEST_CELLS for row in rows):
        return None
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[row.get(name, "") for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(escaped(cell) for cell in line)} |" for line in lines)


def cells(row: str) -> Mapping[str, str]:
    """Return the cells of a row by the names of their columns; none when it is no row.

    A part without a name belongs to the cell before it: a semicolon may stand in a cell.
    """
    named: dict[str, str] = {}
    for place, part in enumerate(row.replace("\n", " ").split("; ")):
        if match := CELL.match(part):
            named[match[1]] = match[2].strip()
        elif not place:
            named[""] = part.strip()
        elif named:
            last = next(reversed(named))
            named[last] = f"{named[last]}; {part.strip()}"
    return named


def escaped(cell: str) -> str:
    """Return a cell in which a bar does not end it."""
    return cell.replace("|", r"\|")
