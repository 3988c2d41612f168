"""Watching: does a job under a progress bar, or watches the worker that does."""

import time

from django.db import connection
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from knowledge import ingestion
from knowledge.ingestion.jobs import OPEN
from knowledge.models import Ingest

POLL_SECONDS = 0.5


def watched(job: Ingest, console: Console) -> None:
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
        bar = Bar(progress, progress.add_task("", total=None, rate=""))
        while True:
            ingestion.run(job.pk, bar.show)
            job.refresh_from_db()
            if job.status not in OPEN:
                return
            seen = ingestion.progress(job)
            bar.show(seen.finished, seen.items, f"{job.current} (by another worker)")
            connection.close()
            time.sleep(POLL_SECONDS)


class Bar:
    """A progress bar that shows the average speed."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task
        self.begun: int | None = None  # items finished before we looked

    def show(self, finished: int, total: int, current: str) -> None:
        """Draw how far the job is."""
        if self.begun is None:
            self.begun = finished
        # Files are finished in bursts; only the average since the start says how it goes.
        speed = (finished - self.begun) / (self.progress.tasks[self.task].elapsed or 1)
        self.progress.update(
            self.task,
            completed=finished,
            total=total,
            description=current,
            rate=f"{speed:.1f} files/s",
        )
