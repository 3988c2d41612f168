"""Import: an archive that `export` wrote, into a collection."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from knowledge.archive import Restored, restore
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of


class Command(BaseCommand):
    """`manage.py import FILE`."""

    help = "Read an archive that `export` wrote into a collection. What is there is left alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--collection", default="", metavar="NAME", help="default: as when it was exported"
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="make a collection that differs what the archive says",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import with a progress bar, then print what was done."""
        console = console_of(self, options)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
                   TimeRemainingColumn())  # fmt: skip
        try:
            with Progress(*columns, console=console, transient=True) as progress:
                stages: dict[str, Any] = {}

                def watch(stage: str, done: int, total: int) -> None:
                    if stage not in stages:
                        stages[stage] = progress.add_task(stage)
                    progress.update(stages[stage], completed=done, total=total)

                restored = restore(
                    options["file"],
                    name=options["collection"],
                    replace=options["replace"],
                    watch=watch,
                )
        except KnowledgeError as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except KeyboardInterrupt as error:
            raise CommandError(
                "Interrupted. What was imported stays; the same command goes on from here.",
                returncode=130,
            ) from error
        console.print(summary(restored), *restored.remarks, sep="\n")


def summary(restored: Restored) -> Table:
    """Return what the import did as a table."""
    table = Table(title=f"Collection {restored.collection}", title_justify="left")
    table.add_column("Documents")
    table.add_column("", justify="right")
    for name in ("new", "replaced", "unchanged", "removed"):
        table.add_row(name, f"{getattr(restored, name):,}")
    table.add_section()
    table.add_row("chunks written", f"{restored.chunks:,}")
    table.add_row("chunks embedded", f"{restored.embedded:,}")
    table.add_row("golden questions", f"{restored.questions:,}")
    table.add_row("seconds", f"{restored.seconds:.1f}")
    return table
