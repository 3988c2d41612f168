"""tools: prints every tool, who may call it and what it is given."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.table import Table

from agents.tools.tool import TOOLS, Tool


class Command(BaseCommand):
    """Prints the tools, generated from the code."""

    help = "Print every tool with what it is given and the roles that may call it."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --json."""
        parser.add_argument("--json", action="store_true", help="as JSON, with whole schemas")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the table."""
        rows = [_row(tool) for tool in TOOLS.values()]
        if options["json"]:
            self.stdout.write(json.dumps(rows, indent=2))
            return
        if not rows:
            self.stdout.write("No role has tools.")
            return
        table = Table("tool", "roles", "is given", "effect", "limits", show_lines=True)
        for row in rows:
            retries = {0: "no retry", 1: "1 retry"}.get(row["retries"], f"{row['retries']} retries")
            limits = f"{row['timeout']:g} s, {retries}"
            table.add_row(
                f"[bold]{row['name']}[/]\n{row['description']}",
                ", ".join(row["roles"]),
                "\n".join(row["schema"]["function"]["parameters"]["properties"]),
                row["effect"],
                f"{limits}, critical" if row["critical"] else limits,
            )
        Console().print(table)


def _row(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "roles": list(tool.roles),
        "effect": tool.effect,
        "identity": list(tool.identity),
        "timeout": tool.seconds,
        "retries": tool.retries,
        "critical": tool.critical,
        "schema": tool.schema(),
    }
