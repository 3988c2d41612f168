"""Report: a chaos run as a table, as JSON, and as a page of the documentation."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from assistant.chaos.reckoning import Reckoning
from assistant.chaos.recovery import Recovery

ZEROS = {
    "lost": "turns lost",
    "failed": "turns that ended with an error",
    "answered_twice": "turns answered twice",
    "steps_twice": "turns with a step that took effect twice",
    "paid_twice": "model calls made again although their reply was stored",
    "told_twice": "turns whose watchers were told twice that it ended",
}
FIGURES = {
    "turns": "turns",
    "hops": "hops (steps done)",
    "model_calls": "replies of models",
    "taken_over": "steps taken over by another worker",
    "refused": "questions not accepted while the server was away",
}


RECOVERED = "until the last of the turns under way went on"


@dataclass(frozen=True)
class Run:
    """What was done to Docent, for how long, and what came of it."""

    found: Reckoning
    recoveries: Sequence[Recovery]
    seed: int
    minutes: float

    def rows(self) -> list[tuple[str, str]]:
        """Return what must be zero, then the other figures."""
        values = self.found.as_json()
        figures = [(told, f"{values[name]:,}") for name, told in (ZEROS | FIGURES).items()]
        return [*figures, ("slowest recovery, seconds", f"{self.slowest:.1f}")]

    @property
    def slowest(self) -> float:
        """Seconds after a fault until the last of the turns under way went on."""
        return max((fault.slowest for fault in self.recoveries), default=0.0)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "seed": self.seed,
            "minutes": self.minutes,
            **self.found.as_json(),
            "slowest_recovery": self.slowest,
            "faults": [asdict(fault) for fault in self.recoveries],
        }

    def tables(self) -> Group:
        """Return the figures for a terminal."""
        figures = Table("what", "figure", title=f"seed {self.seed}")
        for row in self.rows():
            figures.add_row(*row)
        faults = Table("fault", "times", "median s", "slowest s", title=RECOVERED)
        for fault in self.recoveries:
            faults.add_row(*_cells(fault))
        return Group(figures, faults)

    def page(self) -> str:
        """Return the page of the documentation that shows this run."""
        rows = "\n".join(f"| {told} | {figure} |" for told, figure in self.rows())
        faults = "\n".join(f"| {' | '.join(_cells(fault))} |" for fault in self.recoveries)
        command = f"python3 manage.py chaos --minutes {self.minutes:g} --seed {self.seed}"
        page = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
        return page.format(rows=rows, faults=faults, command=command, machine=_machine())


def _cells(fault: Recovery) -> tuple[str, str, str, str]:
    return fault.name, str(fault.times), f"{fault.usual:.1f}", f"{fault.slowest:.1f}"


def _machine() -> str:
    return f"{platform.system()}, Python {platform.python_version()}"
