"""Charts: figures as bars, ready to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """One row of figures, and how long its bar is, in percent; text, or it would be localised."""

    row: dict[str, Any]
    width: str


def chart(rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the rows with bars for what they cost, or for their tokens where nothing cost any."""
    measure = "priced_cost" if any(row["priced_cost"] for row in rows) else "tokens"
    sizes = [
        row["priced_cost"]
        if measure == "priced_cost"
        else row["input_tokens"] + row["output_tokens"]
        for row in rows
    ]
    most = max(sizes, default=0) or 1
    return [Column(row, f"{100 * size / most:.2f}") for row, size in zip(rows, sizes, strict=True)]
