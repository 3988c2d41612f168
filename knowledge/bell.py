"""Bell: tells the ingest queue that an upload waits."""

import logging

from celery import current_app
from kombu.exceptions import OperationalError

from knowledge.models import Ingest
from knowledge.names import INGEST_QUEUE

log = logging.getLogger(__name__)


def ring(upload: Ingest) -> None:
    """Send the upload's id. A bell nobody hears is rung again by the sweeper."""
    try:
        current_app.send_task(INGEST_QUEUE, args=[str(upload.pk)], queue=INGEST_QUEUE)
    except OperationalError as error:
        log.warning("Redis is away, upload %s waits: %s", upload.pk, error)
