"""Tasks: works on one job of the library; may be delivered any number of times."""

import uuid

from celery import shared_task

from knowledge import ingestion, upkeep
from knowledge.identifiers import INGEST_QUEUE


@shared_task(name=INGEST_QUEUE)
def ingest(ingest_id: str) -> None:
    """Work on the job with this id unless somebody does or did."""
    identity = uuid.UUID(ingest_id)
    if upkeep.is_upkeep(identity):
        upkeep.run(identity)
    else:
        ingestion.run(identity)
