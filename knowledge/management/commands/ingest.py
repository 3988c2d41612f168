"""Ingest: brings a collection to what files and folders say."""

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from knowledge.errors import KnowledgeError
from knowledge.ingestion import Findings, Problem, Report, find, ingest

DEFAULT_COLLECTION = "documents"
# Names shown per reason; the rest is counted.
NAMES_SHOWN = 5


class Command(BaseCommand):
    """`manage.py ingest PATH…`."""

    help = "Take files and folders into a collection. What did not change is left alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument(
            "--collection",
            default=DEFAULT_COLLECTION,
            metavar="NAME",
            help="made when it does not exist (default: %(default)s)",
        )
        parser.add_argument(
            "--keep-missing",
            action="store_true",
            help="keep documents whose file is gone from an ingested folder",
        )
        parser.add_argument(
            "--force", action="store_true", help="take unchanged documents in anew, too"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ingest with a progress bar, then print what became of every file."""
        # Django's wrapper ends every write with a line break, in the midst of a progress bar too.
        out = cast("IO[str]", self.stdout._out)
        console = Console(file=out, no_color=options["no_color"])
        try:
            findings = find(options["paths"])
            report = ingest_watched(findings, console, options)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            raise CommandError(
                "Interrupted. What was stored stays; the same command goes on from here.",
                returncode=130,
            ) from error
        console.print(summary(report), *remarks(report), sep="\n")
        if not report.is_useful:
            raise CommandError("Nothing could be ingested.")


def ingest_watched(findings: Findings, console: Console, options: dict[str, Any]) -> Report:
    """Ingest the files under a progress bar."""
    columns = (
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(findings.files), rate="")

        def watch(finished: int, origin: str) -> None:
            # Files are finished in bursts; only the average since the start says how it goes.
            speed = finished / (progress.tasks[task].elapsed or 1)
            progress.update(
                task, completed=finished, description=origin, rate=f"{speed:.1f} files/s"
            )

        return ingest(
            findings,
            collection=options["collection"],
            keep_missing=options["keep_missing"],
            force=options["force"],
            watch=watch,
        )


def summary(report: Report) -> Table:
    """Return what became of the files as a table."""
    table = Table(title=f"Collection {report.collection}", title_justify="left")
    table.add_column("Documents")
    table.add_column("", justify="right")
    for name in ("new", "changed", "unchanged", "removed", "skipped"):
        table.add_row(name, str(len(getattr(report, name))))
    table.add_section()
    table.add_row("chunks written", str(report.chunks))
    table.add_row("seconds", f"{report.seconds:.1f}")
    return table


def remarks(report: Report) -> list[str]:
    """Return a line per reason for which files were skipped, doubted or passed over."""
    lines = [f"Skipped, {line}" for line in by_reason(report.skipped)]
    lines += [f"Warning, {line}" for line in by_reason(report.warnings)]
    ignored = [f"{count} {reason}" for reason, count in sorted(report.ignored.items())]
    return lines + ([f"Passed over: {', '.join(ignored)}"] if ignored else [])


def by_reason(problems: Sequence[Problem]) -> list[str]:
    """Return "reason: file, file and 3 more" for each reason."""
    sources: dict[str, list[str]] = defaultdict(list)
    for problem in problems:
        sources[problem.reason].append(problem.source)
    return [
        f"{reason}: {', '.join(names[:NAMES_SHOWN])}"
        + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
        for reason, names in sources.items()
    ]
