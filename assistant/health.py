"""Health: whether this process is alive, and whether a turn could run to its end."""

import logging

import redis
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse

from agents.steps import events, presence
from agents.trace import queues

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
