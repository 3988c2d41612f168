"""prompts: checks and shows what language models are told."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prompts.checks import Checked, checked


class Command(BaseCommand):
    """Renders prompts with their samples, all to be checked or one to be read."""

    help = "Check every prompt with its samples, or show one as a model gets it."
    # What they would say is what is printed here, in full.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `check` and `show NAME`."""
        parts = parser.add_subparsers(dest="part", required=True)
        parts.add_parser("check", help="render every prompt; exit code 1 when one is wrong")
        show = parts.add_parser("show", help="print one prompt, filled in with its samples")
        show.add_argument("name", help="name of the prompt: its file without .md")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check or show."""
        found = list(checked())
        if options["part"] == "show":
            self._show(found, options["name"])
        elif self._check(found):
            sys.exit(1)

    def _check(self, found: list[Checked]) -> bool:
        """Print a line for each prompt; return whether one is wrong."""
        table = Table("prompt", "hash", "tokens, about", "", "file")
        for each in found:
            table.add_row(
                each.name,
                each.rendered.hash if each.rendered else "",
                f"{each.tokens:,}" if each.rendered else "",
                Text(each.problem, "red") if each.problem else Text("OK", "green"),
                Text(str(each.path), overflow="fold"),
            )
        Console().print(table)
        return any(each.problem for each in found)

    def _show(self, found: list[Checked], name: str) -> None:
        prompt = next((each for each in found if each.name == name), None)
        if prompt is None:
            known = ", ".join(sorted({each.name for each in found if each.name}))
            raise CommandError(f"There is no prompt {name!r}; there are: {known}.")
        if prompt.rendered is None:
            raise CommandError(f"{prompt.path}: {prompt.problem}")
        for message in prompt.rendered.messages:
            self.stdout.write(f"--- {message['role']} ---\n{message['content']}\n")
