"""Export: a collection as one archive."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from knowledge.archive import export
from knowledge.archive.contents import Manifest
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of


class Command(BaseCommand):
    """`manage.py export COLLECTION FILE`."""

    help = "Write a collection into one file: documents, versions, vectors, graph, questions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("collection", metavar="COLLECTION")
        parser.add_argument("file", type=Path, metavar="FILE", help="such as handbook.docent")
        parser.add_argument("--replace", action="store_true", help="write over an existing file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export with a progress bar, then print what the archive holds."""
        console = console_of(self, options)
        path: Path = options["file"]
        if path.exists() and not options["replace"]:
            raise CommandError(
                f"{path} exists: name another file, or write over it with --replace."
            )
        try:
            (collection,) = collections_named([options["collection"]])
            columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            with Progress(*columns, console=console, transient=True) as progress:
                task = progress.add_task("")
                manifest = export(
                    collection,
                    path,
                    watch=lambda done, total: progress.update(task, completed=done, total=total),
                )
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError("Interrupted. Nothing was written.", returncode=130) from error
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror or error}") from error
        console.print(summary(manifest, path))


def summary(manifest: Manifest, path: Path) -> Table:
    """Return what the archive holds as a table."""
    table = Table(title=f"{path.name}, {path.stat().st_size:,} bytes", title_justify="left")
    table.add_column(f"Collection {manifest.collection}")
    table.add_column("", justify="right")
    for name, count in manifest.counts.items():
        label = {"questions": "golden questions"}.get(name, name.replace("_", " "))
        table.add_row(label, f"{count:,}")
    table.add_section()
    for model in manifest.models:
        table.add_row(f"vectors of {model.name}", f"{model.dimensions} dimensions")
    return table
