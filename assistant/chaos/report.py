"""Report: a chaos run as a table, as JSON, and as a page of the documentation."""

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from assistant.chaos.reckoning import Reckoning

ZEROS = {
    "lost": "turns lost",
    "failed": "turns that ended with an error",
    "answered_twice": "turns answered twice",
    "steps_twice": "turns with a step that took effect twice",
    "paid_twice": "model calls made again although their reply was stored",
}
FIGURES = {
    "turns": "turns",
    "hops": "hops (steps done)",
    "model_calls": "replies of models",
    "taken_over": "steps taken over by another worker",
    "slowest_recovery": "slowest recovery of a step, seconds",
    "refused": "questions not accepted while the server was away",
}


@dataclass(frozen=True)
class Run:
    """What was done to Docent, for how long, and what came of it."""

    found: Reckoning
    committed: Sequence[str]
    seed: int
    minutes: float

    def rows(self) -> list[tuple[str, str]]:
        """Return what must be zero, then the other figures."""
        values = self.found.as_json()
        return [(told, f"{values[name]:,}") for name, told in (ZEROS | FIGURES).items()]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        faults = dict(Counter(self.committed))
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            "faults": faults,
            **self.found.as_json(),
        }

    def table(self) -> Table:
        """Return the figures for a terminal."""
        table = Table("what", "figure", title=f"{len(self.committed)} faults, seed {self.seed}")
        for told, figure in self.rows():
            table.add_row(told, figure)
        return table

    def page(self) -> str:
        """Return the page of the documentation that shows this run."""
        rows = "\n".join(f"| {told} | {figure} |" for told, figure in self.rows())
        faults = "\n".join(
            f"| {name} | {times} |" for name, times in sorted(Counter(self.committed).items())
        )
        command = f"python3 manage.py chaos --minutes {self.minutes:g} --seed {self.seed}"
        page = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
        return page.format(rows=rows, faults=faults, command=command, machine=_machine())


def _machine() -> str:
    return f"{platform.system()}, Python {platform.python_version()}"
