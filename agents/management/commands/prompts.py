"""prompts: checks and shows what language models are told."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prompts.checks import CheckedFile, checked_files


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
        files = list(checked_files())
        if options["part"] == "show":
            self._show(files, options["name"])
        elif self._check(files):
            sys.exit(1)

    def _check(self, files: list[CheckedFile]) -> bool:
        """Print a line for each prompt; return whether one is wrong."""
        table = Table("prompt", "hash", "tokens, about", "", "file")
        for file in files:
            table.add_row(
                file.name,
                file.rendered.hash if file.rendered else "",
                f"{file.tokens:,}" if file.rendered else "",
                Text(file.problem, "red") if file.problem else Text("OK", "green"),
                Text(str(file.path), overflow="fold"),
            )
        Console().print(table)
        return any(file.problem for file in files)

    def _show(self, files: list[CheckedFile], name: str) -> None:
        prompt = next((each for each in files if each.name == name), None)
        if prompt is None:
            known = ", ".join(sorted({each.name for each in files if each.name}))
            raise CommandError(f"There is no prompt {name!r}; there are: {known}.")
        if prompt.rendered is None:
            raise CommandError(f"{prompt.path}: {prompt.problem}")
        for message in prompt.rendered.messages:
            self.stdout.write(f"--- {message['role']} ---\n{message['content']}\n")
