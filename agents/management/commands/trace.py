"""trace: prints what happened in a turn."""

import json
import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from agents.models import Envelope
from agents.trace import trace


class Command(BaseCommand):
    """Prints a turn step by step."""

    help = "Print what happened in a turn: every step, what it wrote, waiting and working time."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add TURN, --json and --full."""
        parser.add_argument("turn", help="id of the turn, or an error id a user was shown")
        parser.add_argument("--json", action="store_true", help="everything, as JSON")
        parser.add_argument("--full", action="store_true", help="do not shorten what was written")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the trace."""
        told = trace(_find(options["turn"]))
        if options["json"]:
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
            return
        console = Console()
        console.print(f"Turn {told['turn_id']}: {told['status']} in {told['seconds']} s")
        table = Table("", "role", "stage", "status", "wait ms", "run ms", "wrote")
        for step in told["steps"]:
            table.add_row(
                str(step["number"]),
                step["role"],
                step["stage"],
                step["status"] + (f" ({step['attempt']})" if step["attempt"] > 1 else ""),
                _ms(step["wait_seconds"]),
                _ms(step["run_seconds"]),
                step["error"] or _wrote(step["wrote"], full=options["full"]),
            )
        console.print(table)
        for fault in told["faults"]:
            console.print(f"[red]{fault['code']}[/] {fault['summary']}")


def _find(name: str) -> Envelope:
    by_fault = Envelope.objects.filter(error_id=name).first()
    if by_fault:
        return by_fault
    try:
        return Envelope.objects.get(pk=uuid.UUID(name))
    except (ValueError, Envelope.DoesNotExist):
        raise CommandError(f"There is no turn and no error {name!r}.") from None


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.1f}"


def _wrote(values: dict[str, Any], *, full: bool) -> str:
    lines = []
    for name, value in values.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {shown if full or len(shown) <= 90 else shown[:90] + '…'}")
    return "\n".join(lines)
