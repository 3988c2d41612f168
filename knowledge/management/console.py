"""Console: jobs under a progress bar, and tables of what came of them, for a terminal."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

from django.core.management.base import BaseCommand
from django.db import connection
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from knowledge import ingestion
from knowledge.ingestion import Problem, Report, progress
from knowledge.ingestion.jobs import OPEN
from knowledge.models import Ingest, Receipt

# Names shown per reason; the rest is counted.
NAMES_SHOWN = 5
POLL_SECONDS = 0.5
# Where nothing can be drawn anew, a line now and then tells how far it is.
LINE_SECONDS = 3.0


def console_of(command: BaseCommand, options: Mapping[str, Any]) -> Console:
    """Return a console on the output of a command, in colours unless the options forbid them."""
    # Django's wrapper ends every write with a line break, in the midst of a progress bar too.
    output = cast("IO[str]", command.stdout._out)
    return Console(file=output, no_color=options["no_color"])


def summary(report: Report) -> Table:
    """Return what became of the documents as a table."""
    table = Table(title=f"Collection {report.collection}", title_justify="left")
    table.add_column("Documents")
    table.add_column("", justify="right")
    for name in ("new", "changed", "unchanged", "duplicate", "removed"):
        table.add_row(name, str(getattr(report, name)))
    table.add_row("skipped", str(len(report.skipped)))
    table.add_section()
    table.add_row("chunks written", str(report.chunks))
    table.add_row("seconds", f"{report.seconds:.1f}")
    return table


def notes(report: Report) -> list[str]:
    """Return a line per reason for which files were skipped, doubted or passed over."""
    lines = [f"Skipped, {line}" for line in by_reason(report.skipped)]
    lines += [f"Warning, {line}" for line in by_reason(report.warnings)]
    ignored = [f"{count} {reason}" for reason, count in sorted(report.ignored.items())]
    lines += [f"Passed over: {', '.join(ignored)}"] if ignored else []
    return lines + ([f"Receipt of what was removed: {report.receipt}"] if report.receipt else [])


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


def job_table(job: Ingest) -> Table:
    """Return how one job stands as a table."""
    state = progress(job)
    table = Table(title=f"{job.name} into {job.collection.name}", title_justify="left")
    table.add_column("Ingest")
    table.add_column(str(job.pk), overflow="fold")
    table.add_row("status", state.status)
    table.add_row("items", f"{state.finished} of {state.items}")
    for name, count in sorted(state.outcomes.items()):
        table.add_row(f"  {name}", str(count))
    table.add_row("documents", str(state.documents))
    table.add_row("chunks written", str(state.chunks))
    if not job.ended:
        table.add_row("at hand", state.current)
        table.add_row("items a second", f"{state.rate:.1f}")
        left = state.seconds_left
        table.add_row("seconds left", "unknown" if left is None else f"{left:.0f}")
    if job.error:
        table.add_row("error", job.error)
    return table


def jobs_table(jobs: Iterable[Ingest]) -> Table:
    """Return jobs as a table, one a line."""
    table = Table()
    for name in ("Ingest", "Collection", "Status", "Items", "Begun", "What"):
        table.add_column(name)
    for job in jobs:
        state = progress(job)
        created = f"{job.created:%Y-%m-%d %H:%M}"
        items = f"{state.finished}/{state.items}"
        table.add_row(str(job.pk)[:8], job.collection.name, job.status, items, created, job.name)
    return table


def receipt_table(receipt: Receipt) -> Table:
    """Return a receipt as a table."""
    table = Table(title=f"Removed from {receipt.collection}", title_justify="left")
    table.add_column("Receipt")
    table.add_column(str(receipt.pk), justify="right", overflow="fold")
    for name, count in receipt.removed.items():
        table.add_row(name, str(count))
    table.add_section()
    table.add_row("answers that relied on them", str(len(receipt.answers)))
    return table


class Lines:
    """Progress in plain lines, for a console that is no terminal; nothing in one that is."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, ""
        self.next = time.monotonic() + LINE_SECONDS

    def tell(self, line: str) -> None:
        """Print how far it is, unless one was printed a moment ago, or nothing has changed."""
        if self.console.is_terminal or line == self.last or time.monotonic() < self.next:
            return
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        self.last, self.next = line, time.monotonic() + LINE_SECONDS


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for the block, which gives a function to tell it how many of how many are done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    lines = Lines(console := Console(stderr=True))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            lines.tell(f"{title}: {done:,} of {total:,}")

        yield watch


def run_with_bar(job: Ingest, console: Console) -> None:
    """Run the job to its end; while another worker has it, watch that one instead."""
    columns = (
        TextColumn("{task.percentage:>3.0f} %"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = Bar(progress, progress.add_task("", total=None, rate=""), Lines(console))
        while True:
            ingestion.run(job.pk, bar.show)
            job.refresh_from_db()
            if job.status not in OPEN:
                return
            state = ingestion.progress(job)
            bar.show(state.finished, state.items, f"{job.current} (by another worker)")
            connection.close()
            time.sleep(POLL_SECONDS)


class Bar:
    """A progress bar that shows the average speed; lines where none can be drawn."""

    def __init__(self, progress: Progress, task: TaskID, lines: Lines) -> None:
        self.progress, self.task, self.lines = progress, task, lines
        self.finished_before: int | None = None  # items finished before we looked

    def show(self, finished: int, total: int, current: str) -> None:
        """Draw how far the job is."""
        if self.finished_before is None:
            self.finished_before = finished
        # Files are finished in bursts; only the average since the start says how it goes.
        speed = (finished - self.finished_before) / (self.progress.tasks[self.task].elapsed or 1)
        self.progress.update(
            self.task,
            completed=finished,
            total=total,
            description=current,
            rate=f"{speed:.1f} files/s",
        )
        left = f", {(total - finished) / speed:.0f} s left" if speed else ""
        self.lines.tell(f"{finished:,} of {total:,}, {speed:.1f} files/s{left}: {current}")
