"""Queues: a Redis list each, addressed by its name."""

from kombu import Exchange, Queue


def queue(name: str) -> Queue:
    """Return the queue of this name.

    It has an exchange and a routing key of its own: queues that leave them to Celery share its
    default ones, and each of them gets every message.
    """
    return Queue(name, Exchange(name, type="direct"), routing_key=name)
