"""Answers to whoever asks for a job: how far it is, or why nothing came of it."""

import threading
import time
from dataclasses import asdict
from typing import Any

from django.db import connection
from django.urls import reverse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response

from knowledge.ingestion.jobs import OPEN
from knowledge.ingestion.report import progress
from knowledge.models import Ingest, Item
from knowledge.serializers.ingests import (
    IngestSerializer,
    ItemSerializer,
    ItemsQuery,
    ProgressSerializer,
)

# A page is ingested well within this; a book is not, and its client polls instead.
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.2
# Who waits keeps a thread of the web process; those beyond are answered at once, and poll.
MOST_WAITING = 8
waiting = threading.BoundedSemaphore(MOST_WAITING)


class ItemPages(PageNumberPagination):
    """Pages of items, as long as those of all lists."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200


class NotIngested(APIException):
    """The job failed, and not over what was sent."""

    status_code = 503
    default_code = "unavailable"


def answer(job: Ingest, request: Request, *, wait: bool, field: str) -> Response:
    """Return 201 when the job is done in time and 202 otherwise, with its items.

    Raises ValidationError with the reasons when none of them could be read; `field` is the name
    of what was sent. Raises NotIngested when Docent is at fault.
    """
    if wait:
        settle(job)
    if job.status == Ingest.Status.FAILED:
        refuse(job, field)
    done = job.status == Ingest.Status.DONE
    return Response(detail(job, request), status=201 if done else 202)


def settle(job: Ingest) -> None:
    """Wait for the end of the job, for a time, without holding a connection meanwhile.

    Not at all when too many wait already.
    """
    if not waiting.acquire(blocking=False):
        return
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            job.refresh_from_db()
            if job.status not in OPEN:
                return
            connection.close()
            time.sleep(POLL_SECONDS)
    finally:
        waiting.release()


def refuse(job: Ingest, field: str) -> None:
    """Raise what says why the job failed."""
    skipped = job.items.filter(status=Item.Status.SKIPPED).values_list("origin", "reason")
    reasons = [f"{origin}: {reason}" for origin, reason in skipped[:100]]
    if not reasons:
        raise NotIngested(job.error)
    raise ValidationError({field: reasons})


def detail(job: Ingest, request: Request) -> dict[str, Any]:
    """Return the job with its progress and the page of its items that `?page=` asks for."""
    query = ItemsQuery(data=request.query_params)
    query.is_valid(raise_exception=True)
    items = job.items.defer("body").filter(**query.validated_data)
    pages = ItemPages()
    page = pages.paginate_queryset(items, request)
    listed = pages.get_paginated_response(ItemSerializer(page, many=True).data).data
    # Whoever posted turns the page at the job's own address.
    own = reverse("ingest", args=[job.pk])
    for way in ("next", "previous"):
        listed[way] = listed[way] and listed[way].replace(request.path, own, 1)
    return {
        **IngestSerializer(job).data,
        "progress": ProgressSerializer(asdict(progress(job))).data,
        "items": listed,
    }
