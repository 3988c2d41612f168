"""Switching: lets searches use another model's vectors, with nothing missing among them."""

import logging
from datetime import datetime
from time import sleep

from django.db import transaction
from django.utils.timezone import now

from knowledge import calibration
from knowledge.embedding import Embedder
from knowledge.errors import EmbeddingUnavailable
from knowledge.ingestion.storing import take_turns
from knowledge.models import Collection, Ingest
from knowledge.reindexing.filling import fill, is_whole

# While documents keep coming, there is always one that lacks its vector: after so many rounds the
# collection is switched without it, and it gets its vector right after.
ROUNDS = 10
PAUSE_SECONDS = 1.0

log = logging.getLogger(__name__)


def switch(collection: Collection, embedder: Embedder) -> int:
    """Let searches use the model from now on; return how many chunks were filled on the way.

    Ends when everything has its vector, that of jobs included that were at work. Raises
    EmbeddingUnavailable.
    """
    filled = 0
    for left in reversed(range(ROUNDS)):
        with transaction.atomic():
            # No document can be stored between the look and the switch.
            take_turns(collection)
            if is_whole(collection, embedder.name) or not left:
                collection.embedding_model = embedder.name
                collection.save(update_fields=["embedding_model"])
                break
        filled += fill(collection, embedder)
    filled += follow(collection, embedder, now())
    try:
        calibration.refresh(collection)
    except (calibration.Uncalibrated, EmbeddingUnavailable) as error:
        # It is switched all the same; until it is calibrated, the setting's threshold holds.
        log.warning("%s with %s is not calibrated: %s", collection.name, embedder.name, error)
    return filled


def follow(collection: Collection, embedder: Embedder, moment: datetime) -> int:
    """Fill what is stored by jobs from before `moment`: they make vectors of the former model."""
    filled = 0
    while True:
        # Asked before filling: what the last of them stored is then filled, too.
        is_last = not jobs(collection, moment)
        filled += fill(collection, embedder)
        if is_last:
            return filled
        sleep(PAUSE_SECONDS)


def jobs(collection: Collection, moment: datetime) -> bool:
    """Whether a worker is at a job of the collection that it began before."""
    running = Ingest.objects.filter(collection=collection, status=Ingest.Status.RUNNING)
    return running.filter(started__lt=moment, lease_until__gte=now()).exists()
