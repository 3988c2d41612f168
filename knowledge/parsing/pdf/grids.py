"""Grids: lines of cells that stand under each other as tables."""

import re
from collections.abc import Sequence

from knowledge.parsing import tables
from knowledge.parsing.pdf.lines import Cell, Line

# What can name a column: short, and a word.
NAME = re.compile(r"(?=.*[^\W\d_]{2}).{1,40}")


def sentences(rows: Sequence[Line]) -> list[str]:
    """Return the rows of a table as sentences, named by the first row where it can do that."""
    widest = max(rows, key=lambda row: len(row.cells)).cells
    table = [arranged(row.cells, widest) for row in rows]
    first = table[0]
    has_names = all(map(NAME.fullmatch, first)) and (rows[0].is_bold or len(first) > 2)
    return tables.sentences(
        [
            [tables.Cell(text, is_header=has_names and not place) for text in row]
            for place, row in enumerate(table)
        ]
    )


def arranged(cells: Sequence[Cell], columns: Sequence[Cell]) -> list[str]:
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
