"""Metrics: queues, turns under way and servers, as pages and Prometheus are shown them.

What turns came to, and what that took and cost, is counted in `agents.trace.tally`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import Error
from django.db.models import Count
from django.utils.timezone import now
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.models import Envelope
from agents.names import Status
from agents.steps import presence
from agents.tools.tool import ToolOutcome
from agents.trace import tally
from agents.trace.queues import (
    WINDOW,
    Outage,
    Queue,
    State,
    all_queues,
    announcements,
    outages,
    silences,
)
from agents.trace.tool_use import role_figures, tool_figures
from knowledge.models import Ingest


@dataclass(frozen=True)
class Overview:
    """All there is to see of the work at one moment."""

    queues: list[Queue]
    turns: int  # under way
    overdue: int  # past their deadline, and not ended: no sweeper runs
    sweepers: int | None  # None: Redis is away
    turns_limit: int
    turns_limit_per_key: int
    tools: list[dict[str, Any]] = field(default_factory=list)  # see `tool_figures`
    callers: list[dict[str, Any]] = field(default_factory=list)  # the same by role
    window_seconds: int = int(WINDOW.total_seconds())

    @property
    def redis(self) -> bool:
        """Whether Redis answers."""
        return self.sweepers is not None

    @property
    def deaf(self) -> list[Queue]:
        """The queues whose worker says that it listens, and takes nothing."""
        return [queue for queue in self.queues if queue.state is State.DEAF]

    @property
    def needed(self) -> set[str]:
        """The workers that a turn or an ingest may come to."""
        return {*presence.needed_roles(), *presence.SERVICES}

    @property
    def outages(self) -> list[Outage]:
        """The processes that are missing."""
        deserted = [queue.name for queue in self.queues if queue.state is State.DESERTED]
        missing = [name for name in deserted if name in self.needed]
        if self.sweepers == 0:
            missing.append(presence.SWEEPER)
        return outages(missing, silences()) if missing else []


def overview() -> Overview:
    """Return what there is to see now. Raises django.db.Error when PostgreSQL is away."""
    workers = announcements()
    sweepers = [worker for worker in workers or () if presence.SWEEPER in worker.queues]
    running = Envelope.objects.filter(status=Status.RUNNING)
    overdue = running.filter(deadline__lt=now()).count()
    return Overview(
        queues=all_queues(workers),
        turns=running.count() - overdue,
        overdue=overdue,
        sweepers=None if workers is None else len(sweepers),
        turns_limit=settings.MAX_TURNS,
        turns_limit_per_key=settings.MAX_TURNS_PER_KEY,
        tools=tool_figures(now() - WINDOW),
        callers=role_figures(now() - WINDOW),
    )


class OverviewCollector(Collector):
    """Reads the overview anew whenever it is collected."""

    def collect(self) -> Iterable[Metric]:
        """Yield every metric; only which servers answer when PostgreSQL doesn't."""
        servers = GaugeMetricFamily(
            "docent_server_up", "Whether the server answers.", labels=["server"]
        )
        try:
            state = overview()
            counted = [_of_ingests(), *tally.families()]
        except Error:
            servers.add_metric(["postgresql"], 0)
            return [servers]
        servers.add_metric(["postgresql"], 1)
        servers.add_metric(["redis"], int(state.redis))
        present = (*_of_turns(state), *_of_queues(state.queues), *_of_tools(state))
        return [servers, *present, *counted]


def exposition(*others: Collector) -> bytes:
    """Return the metrics, and those of `others`, as text in UTF-8."""
    registry = CollectorRegistry()
    for collector in (OverviewCollector(), *others):
        registry.register(collector)
    return generate_latest(registry)


def _of_turns(state: Overview) -> Iterator[Metric]:
    yield _gauge("docent_turns", "Turns under way.", state.turns)
    yield _gauge("docent_turns_overdue", "Turns past their deadline.", state.overdue)
    yield _gauge("docent_turns_limit", "Turns that may be under way.", state.turns_limit)
    if state.sweepers is not None:
        yield _gauge("docent_sweepers", "Sweepers that run.", state.sweepers)


def _of_queues(queues: list[Queue]) -> Iterator[Metric]:
    steps = GaugeMetricFamily("docent_steps", "Open steps.", labels=["role", "state"])
    oldest = _by_role("docent_queue_oldest_seconds", "How long the oldest queued step is due.")
    consumers = _by_role("docent_queue_consumers", "Workers that listen.")
    deaf = _by_role("docent_queue_deaf", "1 when a worker claims to listen and takes nothing.")
    done = _by_role("docent_recent_done", "Steps done in the last 15 minutes.")
    failed = _by_role("docent_recent_failures", "Attempts that failed in the last 15 minutes.")
    degraded = _by_role("docent_recent_degraded", "Steps done without the model that is set.")
    wait = _spread("docent_recent_wait_seconds", "Waiting in the queue, last 15 minutes.")
    run = _spread("docent_recent_run_seconds", "Time at work, last 15 minutes.")
    for queue in queues:
        for state in ("queued", "postponed", "running", "lost"):
            steps.add_metric([queue.name, state], getattr(queue, state))
        oldest.add_metric([queue.name], queue.oldest)
        if queue.consumers is not None:
            consumers.add_metric([queue.name], queue.consumers)
            deaf.add_metric([queue.name], int(queue.state is State.DEAF))
        done.add_metric([queue.name], queue.done)
        failed.add_metric([queue.name], queue.failures)
        degraded.add_metric([queue.name], queue.degraded)
        for family, spread in ((wait, queue.wait), (run, queue.run)):
            for quantile, seconds in (("0.5", spread.p50), ("0.95", spread.p95)):
                if seconds is not None:
                    family.add_metric([queue.name, quantile], seconds)
    yield from (steps, oldest, consumers, deaf, done, failed, degraded, wait, run)


def _of_ingests() -> Metric:
    jobs = GaugeMetricFamily(
        "docent_ingest_jobs", "Jobs that took documents in, by where they stand.", labels=["status"]
    )
    rows: Any = Ingest.objects.order_by().values_list("status").annotate(Count("pk"))
    counts = dict(rows)
    for status in Ingest.Status:
        jobs.add_metric([status], counts.get(status, 0))
    return jobs


RATES = {
    "failure": "Calls that did not go well",
    "hallucination": "Calls of tools that there are not, or that the role may not call,",
    "validation": "Calls with wrong arguments",
}


def _of_tools(state: Overview) -> Iterator[Metric]:
    seconds = GaugeMetricFamily(
        "docent_recent_tool_seconds", "Time that tools took.", labels=["tool", "quantile"]
    )
    for row in state.tools:
        for quantile, figure in (("0.5", "p50_seconds"), ("0.95", "p95_seconds")):
            if row[figure] is not None:
                seconds.add_metric([row["name"], quantile], row[figure])
    yield seconds
    yield from _of_tool_calls("docent_recent_tool", "tool", state.tools)
    yield from _of_tool_calls("docent_recent_role_tool", "role", state.callers)


def _of_tool_calls(prefix: str, label: str, rows: list[dict[str, Any]]) -> Iterator[Metric]:
    """Yield the calls of tools by their outcome, and the rates, by tool or by role."""
    calls = GaugeMetricFamily(
        f"{prefix}_calls",
        f"Calls of tools in the last 15 minutes, by {label}.",
        labels=[label, "outcome"],
    )
    rates = {
        name: GaugeMetricFamily(
            f"{prefix}_{name}_rate", f"{about} among them, from 0 to 1.", labels=[label]
        )
        for name, about in RATES.items()
    }
    for row in rows:
        for outcome in ToolOutcome:
            calls.add_metric([row["name"], outcome], row[f"{outcome}_calls"])
        for name, family in rates.items():
            family.add_metric([row["name"]], row[f"{name}_rate"])
    yield from (calls, *rates.values())


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _by_role(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["role"])


def _spread(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["role", "quantile"])
