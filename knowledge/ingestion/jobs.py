"""Jobs: which ingests wait, how they are called off, tried again and ended, and what is kept."""

import logging
import uuid
from datetime import timedelta
from typing import Any

from celery import current_app
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import now
from kombu.exceptions import OperationalError

from knowledge import liveness
from knowledge.errors import KnowledgeError
from knowledge.identifiers import INGEST_QUEUE
from knowledge.models import Document, Encoded, Ingest, Item

log = logging.getLogger(__name__)

Status = Ingest.Status
OPEN = (Status.QUEUED, Status.RUNNING)
# What could not be read and was not tried again within a week is sent again, if at all.
BODIES_AFTER = timedelta(days=7)
# Whoever looks into what became of a file looks at the last month of nightly runs.
ITEMS_AFTER = timedelta(days=30)
UPLOADED = Q(kind=Item.Kind.UPLOAD, body__isnull=False)
# Only the latest listing of a sitemap has a body.
LISTING = Q(kind=Item.Kind.URL, body__isnull=False)


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


def enqueue(job: Ingest) -> None:
    """Send the job's id. A bell nobody hears is rung again by the sweeper."""
    try:
        current_app.send_task(INGEST_QUEUE, args=[str(job.pk)], queue=INGEST_QUEUE)
    except OperationalError as error:
        log.warning("Redis is away, ingest %s waits: %s", job.pk, error)


def drop_expired() -> int:
    """Drop the bytes of uploads a week after their job has ended, and all its items after a month.

    The jobs with their reports stay. So do the items of jobs that a document was last read in,
    which say where its file or page is when it is taken in anew, and of those that list a sitemap
    as it was last, which tell what is gone from it. A job has all of its items or none, as one that
    is tried again takes what it does not list to be gone. Costs a query but for the first job that
    is done on a day; return how many items were dropped.
    """
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    if Ingest.objects.filter(status=Ingest.Status.DONE, ended__gte=midnight).count() > 1:
        return 0
    for job in ended_before(BODIES_AFTER, UPLOADED):
        with transaction.atomic():
            lock_items(job, BODIES_AFTER).filter(UPLOADED).update(body=None)
    dropped = 0
    old = ended_before(ITEMS_AFTER, Q()).exclude(pk__in=last_read())
    for job in old.exclude(has_items(LISTING)):
        with transaction.atomic():
            dropped += lock_items(job, ITEMS_AFTER).delete()[0]
    return dropped


def ended_before(age: timedelta, which: Q) -> QuerySet[Ingest]:
    """Return the jobs that ended so long ago and have such items."""
    return Ingest.objects.filter(has_items(which), ended__lt=now() - age).only("pk")


def has_items(which: Q) -> Exists:
    """Return the condition that a job has such items."""
    return Exists(Item.objects.filter(which, ingest=OuterRef("pk")))


def lock_items(job: Ingest, age: timedelta) -> QuerySet[Item]:
    """Return the items of a job, kept from being tried again; none if it was, meanwhile."""
    ended_job = Ingest.objects.filter(pk=job.pk, ended__lt=now() - age)
    return (
        job.items.all()
        if ended_job.select_for_update(skip_locked=True).first()
        else Item.objects.none()
    )


def last_read() -> QuerySet[Item, Any]:
    """Return the jobs in which the documents there are were last read from a file or an address."""
    of_document = Document.objects.filter(
        collection=OuterRef("ingest__collection"), origin=OuterRef("origin")
    )
    items = Item.objects.filter(Exists(of_document), kind__in=(Item.Kind.FILE, Item.Kind.URL))
    place = ("ingest__collection_id", "origin")
    return items.order_by(*place, "-pk").distinct(*place).values("ingest")
