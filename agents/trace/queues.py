"""Queues: what waits on each, who listens to it, and how long its work has taken of late.

All of it is read when it is asked for, from PostgreSQL and Redis: every web process says the same.
"""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import redis
from django.db import connection

from agents.names import Role
from agents.steps import presence
from agents.steps.presence import Announcement, Silence
from knowledge.identifiers import INGEST_QUEUE

WINDOW = timedelta(minutes=15)
# So many rows are looked at for what was of late, however busy it was: that bounds the cost.
LATEST = 20_000
# Something that is due waits this long only when nobody hears, or nobody has time.
LATE_SECONDS = 30.0
QUEUES: dict[str, str] = {role.value: role.queue for role in Role} | {"ingest": INGEST_QUEUE}
WORKER_QUEUES = QUEUES | presence.SERVICES

STEPS = """
    SELECT role, status, available_at AS due, started, ended, lease_until, attempt,
           degraded <> '' AS degraded, created
      FROM agents_step"""
INGESTS = """
    SELECT 'ingest' AS role,
           CASE status WHEN 'queued' THEN 'ready' WHEN 'failed' THEN 'quarantined'
                       ELSE status END AS status,
           CASE status WHEN 'queued' THEN updated ELSE created END AS due,
           started, ended, lease_until, attempts AS attempt, false AS degraded, created
      FROM knowledge_ingest"""

# Rows: role, queued, postponed, running, lost, and for how many seconds the oldest is due.
BACKLOG = f"""
    SELECT role,
           count(*) FILTER (WHERE status = 'ready' AND due <= now()),
           count(*) FILTER (WHERE status = 'ready' AND due > now()),
           count(*) FILTER (WHERE status = 'running' AND lease_until >= now()),
           count(*) FILTER (WHERE status = 'running' AND lease_until < now()),
           extract(epoch FROM now() - min(due) FILTER (WHERE status = 'ready' AND due <= now()))
      FROM ({STEPS} WHERE status IN ('ready', 'running')
            UNION ALL {INGESTS} WHERE status IN ('queued', 'running')) AS work
     GROUP BY role"""  # noqa: S608 constants

# Rows: role, median and 95th percentile of waiting and of running, done, failed attempts,
# degraded, and seconds since the last was taken. The latest rows by id, so that it costs the same
# in a table of millions. What failed and is due again began before it was due: it isn't `taken`.
RECENT = f"""
    SELECT role,
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP
               (ORDER BY extract(epoch FROM started - due)) FILTER (WHERE taken),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP
               (ORDER BY extract(epoch FROM ended - started)) FILTER (WHERE taken),
           count(*) FILTER (WHERE status = 'done'),
           sum(greatest(attempt - (status IN ('running', 'done', 'cancelled'))::int, 0)),
           count(*) FILTER (WHERE degraded),
           extract(epoch FROM now() - max(started))
      FROM (SELECT *, status IN ('running', 'done', 'quarantined') AS taken
              FROM (({STEPS} ORDER BY id DESC LIMIT %(latest)s)
                    UNION ALL
                    ({INGESTS} ORDER BY knowledge_ingest.created DESC LIMIT %(latest)s)) AS work
             WHERE created >= now() - %(window)s) AS work
     GROUP BY role"""  # noqa: S608 constants


class State(StrEnum):
    """How a queue does, the worst that is true of it."""

    UNWATCHED = "unwatched"  # Redis is away, so nobody knows who listens.
    DESERTED = "deserted"  # No worker listens.
    DEAF = "deaf"  # A worker says that it listens, and takes nothing.
    BEHIND = "behind"  # Work is taken, but waits long before it is.
    WORKING = "working"
    IDLE = "idle"


@dataclass(frozen=True)
class Spread:
    """Seconds that half, and nineteen in twenty, took at most; None where nothing was."""

    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True)
class Queue:
    """One queue. `queued`, `running` and `lost` are apart: never taken, under way, fell silent."""

    name: str  # the word its worker is started with
    queue: str
    consumers: int | None = None  # workers that listen; None: Redis is away
    settled: bool = False  # one of them has listened long enough to have heard
    queued: int = 0
    postponed: int = 0  # failed, and due again later
    running: int = 0
    lost: int = 0
    oldest: float = 0.0  # seconds that the longest queued has been due
    wait: Spread = field(default_factory=Spread)
    run: Spread = field(default_factory=Spread)
    done: int = 0  # within WINDOW, as are those below
    failures: int = 0  # attempts that failed or were lost
    degraded: int = 0  # done by the role's own rules although a model is set
    quiet: float | None = None  # seconds since something was taken; None: not within WINDOW

    @property
    def state(self) -> State:
        """Tell how the queue does; see State."""
        if self.consumers is None:
            return State.UNWATCHED
        if not self.consumers:
            return State.DESERTED
        if self.queued and self.oldest > LATE_SECONDS:
            taking = self.running or (self.quiet is not None and self.quiet <= LATE_SECONDS)
            return State.BEHIND if taking or not self.settled else State.DEAF
        return State.WORKING if self.queued or self.running else State.IDLE

    @property
    def spreads(self) -> tuple[Spread, Spread]:
        """The times in the queue and at work."""
        return self.wait, self.run

    @property
    def add_worker(self) -> str:
        """The command that adds a worker."""
        return f"python3 manage.py workers {self.name}"


@dataclass(frozen=True)
class Outage:
    """Queues that nobody listens to, as far as one process did; `since` None: nobody ever did."""

    names: list[str]
    host: str = ""
    pid: str = ""
    since: datetime | None = None

    @property
    def command(self) -> str:
        """The command that takes its place."""
        together = "--together " if len(self.names) > 1 else ""
        return f"python3 manage.py workers {together}{' '.join(self.names)}"


def outages(deserted: Iterable[str], silences: Iterable[Silence]) -> list[Outage]:
    """Return what came to an end, given the names of workers that are missing and who fell silent.

    Each is put down to the process that was heard of last.
    """
    left, found = list(deserted), []
    for silence in silences:
        names = [name for name in left if WORKER_QUEUES[name] in silence.queues]
        if names:
            place, _, _ = silence.worker.rpartition("/")
            place, _, pid = place.rpartition("/")
            since = datetime.fromtimestamp(silence.last, UTC)
            found.append(Outage(names, place.partition("/")[0], pid, since))
        left = [name for name in left if name not in names]
    return [*found, *([Outage(left)] if left else [])]


def all_queues(workers: list[Announcement] | None) -> list[Queue]:
    """Return every queue as it is now, given what its workers announced (None: Redis is away).

    Raises django.db.Error when PostgreSQL is away.
    """
    backlog, recent = _backlog(), _recent()
    listening = Counter(queue for worker in workers or () for queue in worker.queues)
    long_ago = time.time() - LATE_SECONDS
    old_workers = [worker for worker in workers or () if worker.since < long_ago]
    settled = {queue for worker in old_workers for queue in worker.queues}
    return [
        Queue(
            name=name,
            queue=queue,
            consumers=None if workers is None else listening[queue],
            settled=queue in settled,
            **backlog.get(name, {}),
            **recent.get(name, {}),
        )
        for name, queue in QUEUES.items()
    ]


def deaf_queues() -> list[str]:
    """Return the names of the deaf queues, cheaply while none is suspected.

    Raises django.db.Error when PostgreSQL is away.
    """
    late = [work for work in _backlog().values() if work["oldest"] > LATE_SECONDS]
    if all(work["running"] for work in late):
        return []
    return [queue.name for queue in all_queues(announcements()) if queue.state is State.DEAF]


def announcements() -> list[Announcement] | None:
    """Return what every worker has announced; None when Redis is away."""
    try:
        return presence.announcements()
    except redis.RedisError:
        return None


def silences() -> list[Silence]:
    """Return who fell silent of late; nobody when Redis is away."""
    try:
        return presence.silences()
    except redis.RedisError:
        return []


def _backlog() -> dict[str, dict[str, Any]]:
    names = ("queued", "postponed", "running", "lost", "oldest")
    rows = _rows(BACKLOG)
    return {
        role: dict(zip(names, (*counts, float(oldest or 0)), strict=True))
        for role, *counts, oldest in rows
    }


def _recent() -> dict[str, dict[str, Any]]:
    return {
        role: {
            "wait": Spread(*(wait or ())),
            "run": Spread(*(run or ())),
            "done": done,
            "failures": int(failures or 0),
            "degraded": degraded,
            "quiet": None if quiet is None else float(quiet),
        }
        for role, wait, run, done, failures, degraded, quiet in _rows(
            RECENT, {"latest": LATEST, "window": WINDOW}
        )
    }


def _rows(statement: str, values: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
