"""Bell: tells the ingest queue that a job waits."""

import logging

from celery import current_app
from kombu.exceptions import OperationalError

from knowledge.models import Ingest
from knowledge.names import INGEST_QUEUE

log = logging.getLogger(__name__)


def ring(job: Ingest) -> None:
    """Send the job's id. A bell nobody hears is rung again by the sweeper."""
    try:
        current_app.send_task(INGEST_QUEUE, args=[str(job.pk)], queue=INGEST_QUEUE)
    except OperationalError as error:
        log.warning("Redis is away, ingest %s waits: %s", job.pk, error)
