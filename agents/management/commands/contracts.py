"""contracts: prints what every agent reads and writes."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.table import Table

from agents.attributes import TRACE
from agents.contract import REGISTRY
from agents.names import INSTANCES, KIND, Role


class Command(BaseCommand):
    """Prints the contract table, generated from the code."""

    help = "Print what every agent reads and writes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --json."""
        parser.add_argument("--json", action="store_true", help="as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        rows = [_row(role) for role in Role]
        if options["json"]:
            self.stdout.write(json.dumps(rows, indent=2))
            return
        table = Table("role", "kind", "inst.", "reads", "writes", show_lines=True)
        for row in rows:
            table.add_row(
                row["role"],
                row["kind"],
                str(row["instances"]),
                ", ".join(row["reads"]),
                ", ".join(f"{name}*" if name in TRACE else name for name in row["writes"]),
            )
        table.caption = "* for the trace: no other part of Docent reads it"
        Console().print(table)


def _row(role: Role) -> dict[str, Any]:
    agent = REGISTRY.get(role)
    reads = agent.contract.reads if agent else ("the whole payload",)
    writes = agent.contract.writes if agent else ("stage", "response", "target_role")
    return {
        "role": role,
        "kind": KIND[role],
        "queue": role.queue,
        "instances": INSTANCES[role],
        "reads": list(reads),
        "writes": list(writes),
        "trace": [name for name in writes if name in TRACE],
    }
