"""routes: shows the routing table, as text or as a picture."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.table import Table

from agents.trace.drawing import Edges, draw, explore


class Command(BaseCommand):
    """Prints or draws which stage leads where."""

    help = "Show the routing table; with --draw as a picture."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add --draw."""
        parser.add_argument(
            "--draw",
            nargs="?",
            const="routes.svg",
            metavar="FILE",
            help="write an SVG picture (default: routes.svg)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Explore the table and show what was found."""
        edges = explore(enabled_routes=settings.ROUTES)
        if options["draw"]:
            target = Path(options["draw"])
            target.write_text(draw(edges), encoding="utf-8")
            self.stdout.write(f"Drew {len(edges)} stages to {target}")
            return
        Console().print(_table(edges))


def _table(edges: Edges) -> Table:
    table = Table("after", "goes to")
    for stage, targets in edges.items():
        table.add_row(stage, ", ".join(sorted(targets)))
    return table
