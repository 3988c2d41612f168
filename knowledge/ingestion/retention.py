"""Retention: drops what jobs keep that nobody will ask for any more."""

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import now

from knowledge.models import Document, Ingest, Item

# What could not be read and was not tried again within a week is sent again, if at all.
BODIES_AFTER = timedelta(days=7)
# Whoever looks into what became of a file looks at the last month of nightly runs.
ITEMS_AFTER = timedelta(days=30)
UPLOADED = Q(kind=Item.Kind.UPLOAD, body__isnull=False)
# Only the latest listing of a sitemap has a body.
LISTING = Q(kind=Item.Kind.URL, body__isnull=False)


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
