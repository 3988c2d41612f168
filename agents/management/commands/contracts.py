"""contracts: prints what every agent reads and writes."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.table import Table

from agents.contract import contract_table


class Command(BaseCommand):
    """Prints the contract table, generated from the code."""

    help = "Print what every agent reads and writes."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --json."""
        parser.add_argument("--json", action="store_true", help="as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        rows = contract_table()
        if options["json"]:
            self.stdout.write(json.dumps([row.model_dump() for row in rows], indent=2))
            return
        table = Table("role", "kind", "inst.", "reads", "writes", show_lines=True)
        for row in rows:
            table.add_row(
                row.role,
                row.kind,
                str(row.instances),
                ", ".join(row.reads),
                ", ".join(f"{name}*" if name in row.trace else name for name in row.writes),
            )
        table.caption = "* for the trace: no other part of Docent reads it"
        Console().print(table)
