"""Bell: tells a role's queue that a step is ready; what there is to do stands in PostgreSQL."""

import logging
import uuid

from celery import current_app
from kombu.exceptions import OperationalError

from agents.names import Role

log = logging.getLogger(__name__)


def ring(envelope_id: uuid.UUID, number: int, role: Role) -> None:
    """Send two ids, nothing else. A bell nobody hears is rung again by the sweeper."""
    try:
        current_app.send_task(role.queue, args=[str(envelope_id), number], queue=role.queue)
    except OperationalError as error:
        log.warning("Redis is away, step %s of %s waits: %s", number, envelope_id, error)
