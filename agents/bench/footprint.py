"""Footprint: the memory of processes, and how many connections PostgreSQL holds."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

EVERY_SECONDS = 2.0


@dataclass
class Peak:
    """The most that was seen."""

    megabytes: float = 0.0
    connections: int = 0


@contextmanager
def watched(roots: Callable[[], list[int]]) -> Iterator[Peak]:
    """Look at the processes `roots` and all they started, every few seconds of the block."""
    peak, ending = Peak(), threading.Event()

    def look() -> None:
        while True:
            peak.megabytes = max(peak.megabytes, megabytes(descendants(roots())))
            peak.connections = max(peak.connections, connections())
            if ending.wait(EVERY_SECONDS):
                connection.close()
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ending.set()
        watcher.join()


def connections() -> int:
    """Return how many clients PostgreSQL serves, this one among them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type='client backend'")
        return int(cursor.fetchone()[0])


def descendants(roots: list[int]) -> set[int]:
    """Return these processes and all that they started (Linux)."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
    found, more = set[int](), set(roots)
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more} - found
    return found


def megabytes(processes: set[int]) -> float:
    """Return the memory they hold together; what several share is counted once (PSS)."""
    return sum(map(_kilobytes, processes)) / 1024


def _kilobytes(process: int) -> int:
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
