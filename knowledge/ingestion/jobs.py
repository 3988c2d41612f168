"""Jobs: which ingests wait, and how they are called off, tried again and ended."""

import logging
import uuid

from celery import current_app
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.timezone import now
from kombu.exceptions import OperationalError

from knowledge import liveness
from knowledge.errors import KnowledgeError
from knowledge.identifiers import INGEST_QUEUE
from knowledge.models import Encoded, Ingest, Item

Status = Ingest.Status
OPEN = (Status.QUEUED, Status.RUNNING)


class JobError(KnowledgeError):
    """The job is in no state for that."""


class NothingToRetry(JobError):
    """All of it is in, or was uploaded and has to be sent again: there is nothing to try again."""

    code = "nothing_to_retry"


class AlreadyRead(JobError):
    """It is being read already."""

    code = "already_read"


def waiting() -> QuerySet[Ingest]:
    """Return the jobs somebody should `run`: queued, or left behind by a worker that died."""
    return Ingest.objects.filter(
        Q(status=Status.QUEUED) | Q(status=Status.RUNNING, lease_until__lt=now())
    ).order_by("created")


def release_dead() -> int:
    """Let go of the jobs of workers of this machine that are no more, before their lease ends."""
    running = Ingest.objects.filter(status=Status.RUNNING, lease_until__gte=now())
    workers = running.order_by().values_list("worker", flat=True).distinct()
    dead = [worker for worker in workers if liveness.died(worker)]
    return running.filter(worker__in=dead).update(lease_until=now()) if dead else 0


def cancel(ingest_id: uuid.UUID | str) -> bool:
    """Stop a job; False when it had ended. A worker at it stops within a batch of chunks.

    What was stored stays, and `retry` goes on with the rest.
    """
    with transaction.atomic():
        idle = waiting().filter(pk=ingest_id)
        if end(idle, Status.CANCELLED):
            return True
        return bool(Ingest.objects.filter(pk=ingest_id, status__in=OPEN).update(cancelling=True))


def retry(ingest_id: uuid.UUID | str) -> int:
    """Queue an ended job again for what failed or was not reached; return how many items.

    Uploads whose bytes are gone cannot be tried again. Raises JobError while the job is open.
    """
    with transaction.atomic():
        job = Ingest.objects.select_for_update().filter(pk=ingest_id).first()
        if job is None or job.status in OPEN:
            raise JobError("Only a job that has ended can be tried again.")
        items = job.items.filter(status__in=(Item.Status.SKIPPED, Item.Status.WAITING))
        count = items.exclude(kind=Item.Kind.UPLOAD, body=None).update(
            status=Item.Status.WAITING, reason="", updated=now()
        )
        if count:
            Ingest.objects.filter(pk=job.pk).update(
                status=Status.QUEUED,
                attempts=0,
                cancelling=False,
                error="",
                ended=None,
                updated=now(),
            )
    return count


def end(jobs: QuerySet[Ingest], status: Ingest.Status, **values: object) -> int:
    """Set the outcome of these jobs; nobody holds them any more.

    One that was called off is not queued again: it is cancelled.
    """
    jobs = jobs.order_by()
    if status in OPEN:
        called_off = end(jobs.filter(cancelling=True), Status.CANCELLED)
        return called_off + end_as(jobs.filter(cancelling=False), status, **values)
    return end_as(jobs, status, **values)


def end_as(jobs: QuerySet[Ingest], status: Ingest.Status, **values: object) -> int:
    """Set exactly that outcome."""
    ids = list(jobs.values_list("pk", flat=True))
    count = jobs.update(
        status=status,
        token=None,
        lease_until=None,
        cancelling=False,
        current="",
        ended=None if status in OPEN else now(),
        updated=now(),
        **values,
    )
    if status not in OPEN:
        Encoded.objects.filter(ingest__in=ids).delete()
    return count


log = logging.getLogger(__name__)


def enqueue(job: Ingest) -> None:
    """Send the job's id. A bell nobody hears is rung again by the sweeper."""
    try:
        current_app.send_task(INGEST_QUEUE, args=[str(job.pk)], queue=INGEST_QUEUE)
    except OperationalError as error:
        log.warning("Redis is away, ingest %s waits: %s", job.pk, error)
