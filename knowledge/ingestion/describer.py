"""Describer: has models describe the documents to come, several at once, in their order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import partial
from threading import Event
from types import TracebackType
from typing import Self

from django.db import connection

from knowledge.ingestion.decisions import Entry
from knowledge.ingestion.drafts import Draft, describe_by_models, draw_graph
from knowledge.ingestion.job_lease import BEAT_SECONDS

# Documents. A model takes seconds, of which this machine spends none; more would be a rush for a
# server of one's own, which answers a few at a time.
AT_ONCE = 4
AHEAD = 2 * AT_ONCE  # so that models are busy while what came before is embedded
ENTRIES_AHEAD = 200  # with those that wait behind them and need no model

DraftFuture = Future[Draft]


class Describer:
    """Describes drafts in threads, of which there is none as long as no model is asked."""

    def __init__(self, questions: frozenset[str], report_progress: Callable[[], None]) -> None:
        self.questions, self.report_progress = questions, report_progress
        self.steps = (partial(describe_by_models, questions=questions), draw_graph)
        self.stopped = Event()
        self.pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="ingest describer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        """Ask nothing more. A reply that is on its way is waited for, as it is paid for.

        Unless the process is told to end.
        """
        self.stopped.set()
        is_ending = error is not None and not isinstance(error, Exception)
        self.pool.shutdown(wait=not is_ending, cancel_futures=True)

    def ahead(self, entries: Iterable[Entry]) -> Iterator[tuple[Entry, DraftFuture | None]]:
        """Yield the entries in their order, each with what is made of its draft meanwhile."""
        queue: deque[tuple[Entry, DraftFuture | None]] = deque()
        for entry in entries:
            queue.append((entry, self.submit(entry, queue)))
            while queue and is_due(queue):
                yield queue.popleft()
        while queue:
            yield queue.popleft()

    def submit(
        self, entry: Entry, before: Iterable[tuple[Entry, DraftFuture | None]]
    ) -> DraftFuture | None:
        """Have a draft described; None when there is nothing to wait for."""
        if entry.draft is None or not self.questions:
            return None
        for earlier, future in before:
            # What is said of the same text is asked for once, and found by who asks later.
            if future and earlier.sheet.page.content == entry.sheet.page.content:
                self.wait(future)
        return self.pool.submit(self.work, entry.draft)

    def work(self, draft: Draft) -> Draft:
        """Describe a draft, in a thread that keeps no connection to the database."""
        try:
            for step in self.steps:
                if self.stopped.is_set():
                    raise CancelledError
                draft = step(draft)
        finally:
            connection.close()
        return draft

    def result(self, draft: Draft, future: DraftFuture | None) -> Draft:
        """Return the draft as it is described. Raises LeaseLost and Cancelled."""
        if future is None:
            return draw_graph(describe_by_models(draft, self.questions))
        self.wait(future)
        return future.result()

    def wait(self, future: DraftFuture) -> None:
        """Wait, and say about once a second how far the job is. Raises LeaseLost and Cancelled."""
        while not future.done():
            if not connection.in_atomic_block:
                connection.close()
            wait([future], timeout=BEAT_SECONDS)
            self.report_progress()


def is_due(queue: Sequence[tuple[Entry, DraftFuture | None]]) -> bool:
    """Tell whether the first is to be gone on with before others are begun."""
    first = queue[0][1]
    submitted_count = sum(future is not None for _, future in queue)
    return first is None or first.done() or submitted_count >= AHEAD or len(queue) >= ENTRIES_AHEAD
