"""Concurrency: each queue of a worker takes as many bells as the role may do steps."""

from typing import Any

from celery import bootsteps
from django.conf import settings
from kombu import Exchange, Queue
from kombu.common import ignore_errors

from agents.names import Role
from knowledge.identifiers import INGEST_QUEUE


def queue(name: str) -> Queue:
    """Return the queue of this name.

    It has an exchange and a routing key of its own: queues that leave them to Celery share its
    default ones, and each of them gets every message.
    """
    return Queue(name, Exchange(name, type="direct"), routing_key=name)


def limits() -> dict[str, int]:
    """Return how many steps may be under way at once per queue, in one worker process."""
    return {role.queue: settings.ROLE_CONCURRENCY[role] for role in Role} | {INGEST_QUEUE: 1}


class QueueLimits(bootsteps.StartStopStep):
    """Gives every queue but the first a consumer of its own, and each its limit."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        self.consumers: list[Any] = []
        super().__init__(parent, **options)

    def start(self, parent: Any) -> None:
        """Split the queues up; the first stays with Celery's own consumer."""
        first, *others = parent.task_consumer.queues
        parent.task_consumer.queues = [first]
        # Celery sets it when its loop begins, and keeps it.
        parent.qos.value = self._limit(parent, first)
        self.consumers = [self._consumer(parent, queue) for queue in others]

    def _consumer(self, parent: Any, queue: Queue) -> Any:
        consumer = parent.app.amqp.TaskConsumer(
            parent.connection.channel(), queues=[queue], on_decode_error=parent.on_decode_error
        )
        consumer.qos(prefetch_count=self._limit(parent, queue))
        consumer.on_message = parent.create_task_handler()
        consumer.consume()
        return consumer

    def _limit(self, parent: Any, queue: Queue) -> int:
        return limits().get(queue.name) or int(parent.initial_prefetch_count)

    def stop(self, parent: Any) -> None:
        """Take nothing more."""
        for consumer in self.consumers:
            ignore_errors(parent, consumer.cancel)
        self.consumers = []
