"""Tasks: works on one ingest; may be delivered any number of times."""

import uuid

from celery import shared_task

from knowledge import ingestion
from knowledge.identifiers import INGEST_QUEUE


@shared_task(name=INGEST_QUEUE)
def ingest(ingest_id: str) -> None:
    """Work on the job with this id unless somebody does or did."""
    ingestion.run(uuid.UUID(ingest_id))
