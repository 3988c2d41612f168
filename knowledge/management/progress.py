"""Progress: a bar with the time left, on standard error, where results do not go."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for the block, which gives a function to tell it how many of how many are done."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield watch
