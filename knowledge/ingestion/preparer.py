"""Preparer: has pages cut and described by rules in a process of its own, and heeds the lease.

What a stranger wrote may take for ever to be cut, so it is done under the limits that reading a
file has, and ends when its job is called off.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

from django.db import connection

from knowledge.ingestion.job_lease import BEAT_SECONDS
from knowledge.parsing import Page
from knowledge.preparation import Prepared
from knowledge.sandbox.reader import Reader

Value = TypeVar("Value")


class Preparer:
    """Prepares pages in one child process, begun with the first, by a thread of its own."""

    def __init__(self, window: int, report_progress: Callable[[], None]) -> None:
        self.window, self.report_progress = window, report_progress
        self.reader = Reader()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="ingest preparer")

    def close(self) -> None:
        """End the child, whatever it is at."""
        close(self.pool, self.reader)

    def prepare(self, page: Page, origin: str, folders: Sequence[str]) -> Prepared:
        """Return the page prepared. Raises Unreadable, LeaseLost and Cancelled."""
        work = partial(self.reader.prepare, page, origin, folders, window=self.window)
        return result(self.pool.submit(work), self.report_progress)


def result(future: Future[Value], report_progress: Callable[[], None]) -> Value:
    """Wait for what it comes to, and say about once a second how far the job is.

    Raises what it raises, LeaseLost and Cancelled.
    """
    while not wait([future], timeout=BEAT_SECONDS).done:
        report_progress()
        if not connection.in_atomic_block:
            connection.close()
    return future.result()


def close(pool: ThreadPoolExecutor, reader: Reader) -> None:
    """End the thread of a reader, whatever its child is at."""
    pool.shutdown(wait=False, cancel_futures=True)
    reader.stop()  # wakes the thread up, should it wait for the child
    pool.shutdown()
