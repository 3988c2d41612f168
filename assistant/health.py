"""Health: whether this process is alive, whether a turn could run to its end, and figures."""

import logging
from collections.abc import Iterable

import redis
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agents.steps import events, presence
from agents.trace import queues
from agents.trace.metrics import exposition
from conversations.handover import figures
from conversations.refusals import counts
from conversations.stream import open_streams

log = logging.getLogger(__name__)


def alive(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return JsonResponse({"status": "alive"})


def ready(request: HttpRequest) -> JsonResponse:
    """200 when a turn could run; 503 with what is missing, the roles without a worker by name."""
    problems = missing_parts()
    status = "unready" if problems else "ready"
    return JsonResponse({"status": status, "problems": problems}, status=503 if problems else 200)


def missing_parts() -> list[str]:
    """Return what a turn would lack, each as a sentence; empty when it could run."""
    problems = []
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        problems += [
            f"The worker of {name} says that it listens, and takes nothing: restart it."
            for name in queues.deaf_queues()
        ]
    except Error as error:
        log.warning("readiness: %s", error)
        problems.append("PostgreSQL does not answer.")
        # One that broke stays broken; who asks again and again would never see it recover.
        connection.close()
    try:
        events.connection().ping()
        problems += [f"No worker listens for the role {role}." for role in presence.missing_roles()]
        problems += [f"No {name} runs." for name in presence.missing_services()]
    except redis.RedisError as error:
        log.warning("readiness: %s", error)
        problems.append("Redis does not answer.")
    return problems


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer Prometheus; no key needed, and nothing in it of what was said."""
    return HttpResponse(
        exposition(HandoverCollector(), DoorCollector()), content_type=CONTENT_TYPE_PLAIN_0_0_4
    )


class HandoverCollector(Collector):
    """Counts anew, whenever it is collected, the conversations that are with staff."""

    def collect(self) -> Iterable[Metric]:
        """Yield their metrics; none when PostgreSQL is away."""
        try:
            counted = figures()
        except Error:
            return []
        states = GaugeMetricFamily(
            "docent_handovers", "Conversations that are with staff.", labels=["state"]
        )
        for state, count in counted.states.items():
            states.add_metric([state], count)
        oldest = "How long the user waits who waits longest for staff."
        untold = "Handovers of which staff could not be told in one of the ways that are set."
        return [
            states,
            GaugeMetricFamily("docent_handover_oldest_seconds", oldest, value=counted.oldest),
            GaugeMetricFamily("docent_handovers_untold", untold, value=counted.untold),
        ]


class DoorCollector(Collector):
    """Tells who was refused for asking too much, and how many follow events."""

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; none when Redis is away, or lets nobody look."""
        try:
            counted, streams = counts(), open_streams()
        except redis.RedisError:
            return []
        refused = CounterMetricFamily(
            "docent_refused", "Requests that were refused with 429.", labels=["kind"]
        )
        for kind, count in counted.items():
            refused.add_metric([kind], count)
        about = "Clients that are told of events, in all web processes."
        return [refused, GaugeMetricFamily("docent_open_streams", about, value=streams)]
