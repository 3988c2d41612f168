"""Metrics: what there is to see, in the text format of Prometheus.

Everything is a gauge that is computed when it is asked for, so nothing is lost with a process and
any number of web processes say the same.
"""

from collections.abc import Iterable, Iterator

from django.db import Error
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.watching.overview import Overview, overview
from agents.watching.queues import Queue, State


class Watcher(Collector):
    """Asks anew whenever it is collected."""

    def collect(self) -> Iterable[Metric]:
        """Yield every metric; only which servers answer when PostgreSQL doesn't."""
        servers = GaugeMetricFamily(
            "docent_server_up", "Whether the server answers.", labels=["server"]
        )
        try:
            seen = overview()
        except Error:
            servers.add_metric(["postgresql"], 0)
            return [servers]
        servers.add_metric(["postgresql"], 1)
        servers.add_metric(["redis"], int(seen.redis))
        return [servers, *_of_turns(seen), *_of_queues(seen.queues)]


def exposition() -> bytes:
    """Return the metrics as text, in UTF-8."""
    registry = CollectorRegistry()
    registry.register(Watcher())
    return generate_latest(registry)


def _of_turns(seen: Overview) -> Iterator[Metric]:
    yield _gauge("docent_turns", "Turns under way.", seen.turns)
    yield _gauge("docent_turns_overdue", "Turns past their deadline.", seen.overdue)
    yield _gauge("docent_turns_limit", "Turns that may be under way.", seen.turns_limit)
    if seen.sweepers is not None:
        yield _gauge("docent_sweepers", "Sweepers that run.", seen.sweepers)


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


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def _by_role(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["role"])


def _spread(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["role", "quantile"])
