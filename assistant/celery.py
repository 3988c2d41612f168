"""Celery: one queue per role, and the announcement of each worker that it listens."""

from typing import Any

from celery import Celery
from celery.signals import setup_logging

from agents.names import Role
from agents.steps.concurrency import QueueLimits, queue
from agents.steps.presence import Presence
from knowledge.identifiers import INGEST_QUEUE


@setup_logging.connect
def leave_logging_alone(**_: Any) -> None:
    """Have Celery log as everything else does: being heard is what keeps it from its own ways."""


app = Celery("docent")
app.config_from_object("django.conf:settings", namespace="CELERY")
# A bell that was taken is gone: Redis need not be told so, as the sweeper rings for what is lost.
app.conf.broker_transport_options = app.conf.broker_transport_options | {"ack_emulation": False}
app.conf.task_queues = [queue(role.queue) for role in Role] + [queue(INGEST_QUEUE)]
app.conf.task_default_queue = Role.MANAGER.queue
app.autodiscover_tasks(["agents"], related_name="manager")
app.autodiscover_tasks(["knowledge"], related_name="tasks")
app.steps["consumer"].update((QueueLimits, Presence))
app.set_default()
