"""Ingests for staff: how far each is; each can be stopped, and what failed tried again."""

import threading
import time
import uuid
from dataclasses import asdict
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.api.access import reach_of
from knowledge.api.lists import ListView
from knowledge.api.sent import Pages, PagesQuery
from knowledge.collections import collections_named
from knowledge.identifiers import Scope
from knowledge.ingestion import jobs
from knowledge.ingestion.jobs import OPEN, enqueue
from knowledge.ingestion.report import progress
from knowledge.models import Ingest, Item


class IngestSerializer(serializers.ModelSerializer[Ingest]):
    """A job that takes files, uploads or web pages into a collection."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    report = serializers.DictField(read_only=True, help_text="What came of it; empty until then.")

    class Meta:
        model = Ingest
        fields: tuple[str, ...] = (
            "id",
            "collection",
            "kind",
            "name",
            "status",
            "cancelling",
            "report",
            "error",
            "created",
            "started",
            "ended",
            "updated",
        )
        read_only_fields = fields


class ProgressSerializer(serializers.Serializer[Any]):
    """How far a job is."""

    items = serializers.IntegerField(help_text="Known so far: sitemaps and zips add theirs.")
    finished = serializers.IntegerField()
    outcomes = serializers.DictField(
        child=serializers.IntegerField(), help_text="Status of an item → how many have it."
    )
    documents = serializers.IntegerField(help_text="Of the finished items.")
    chunks = serializers.IntegerField(help_text="Written.")
    current = serializers.CharField(help_text="The item at hand.")
    rate = serializers.FloatField(help_text="Items a second over the last minute.")
    seconds_left = serializers.FloatField(allow_null=True, help_text="Null where it is unknown.")


class WarningSerializer(serializers.Serializer[Any]):
    """Something about an item that was taken in all the same."""

    source = serializers.CharField()  # type: ignore[assignment]  # a field of that name
    reason = serializers.CharField()


class ItemSerializer(serializers.ModelSerializer[Item]):
    """One file, web page or upload of a job, and what became of it."""

    warnings = WarningSerializer(many=True, read_only=True)

    class Meta:
        model = Item
        fields = ("number", "kind", "origin", "status", "reason", "warnings", "documents", "chunks")
        read_only_fields = fields


class ItemPage(serializers.Serializer[Any]):
    """A page of a job's items."""

    count = serializers.IntegerField()
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    results = ItemSerializer(many=True)


class IngestDetail(IngestSerializer):
    """A job with how far it is and a page of its items."""

    progress = ProgressSerializer(read_only=True)
    items = ItemPage(read_only=True)

    class Meta(IngestSerializer.Meta):
        fields = (*IngestSerializer.Meta.fields, "progress", "items")
        read_only_fields = fields


class ItemsQuery(PagesQuery):
    """What may stand behind `?` where a job is looked at."""

    status = serializers.ChoiceField(
        Item.Status.choices, required=False, help_text="Only the items with this status."
    )


class IngestsQuery(PagesQuery):
    """What may stand behind `?` where jobs are listed."""

    collection = serializers.CharField(required=False, help_text="Only of this one.")
    status = serializers.ChoiceField(
        Ingest.Status.choices, required=False, help_text="Only those with this status."
    )


# A page is ingested well within this; a book is not, and its client polls instead.
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.2
# Who waits keeps a thread of the web process; those beyond are answered at once, and poll.
WAITING_LIMIT = 8
waiting = threading.BoundedSemaphore(WAITING_LIMIT)


class NotIngested(APIException):
    """The job failed, and not over what was sent."""

    status_code = 503
    default_code = "unavailable"


def ingest_response(job: Ingest, request: Request, *, wait: bool, field: str) -> Response:
    """Return 201 when the job is done in time and 202 otherwise, with its items.

    Raises ValidationError with the reasons when none of them could be read; `field` is the name
    of what was sent. Raises NotIngested when Docent is at fault.
    """
    if wait:
        wait_for_end(job)
    if job.status == Ingest.Status.FAILED:
        raise_failure(job, field)
    done = job.status == Ingest.Status.DONE
    return Response(ingest_detail(job, request), status=201 if done else 202)


def wait_for_end(job: Ingest) -> None:
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


def raise_failure(job: Ingest, field: str) -> None:
    """Raise what says why the job failed."""
    skipped = job.items.filter(status=Item.Status.SKIPPED).values_list("origin", "reason")
    reasons = [f"{origin}: {reason}" for origin, reason in skipped[:100]]
    if not reasons:
        raise NotIngested(job.error)
    raise ValidationError({field: reasons})


def ingest_detail(job: Ingest, request: Request) -> dict[str, Any]:
    """Return the job with its progress and the page of its items that `?page=` asks for."""
    query = ItemsQuery.read(request.query_params)
    items = job.items.defer("body")
    if "status" in query:
        items = items.filter(status=query["status"])
    pages = Pages()
    page = pages.paginate_queryset(items, request)
    item_page = pages.get_paginated_response(ItemSerializer(page, many=True).data).data
    # Whoever posted turns the page at the job's own address.
    own = reverse("ingest", args=[job.pk])
    for link in ("next", "previous"):
        item_page[link] = item_page[link] and item_page[link].replace(request.path, own, 1)
    return {
        **IngestSerializer(job).data,
        "progress": ProgressSerializer(asdict(progress(job))).data,
        "items": item_page,
    }


@extend_schema(parameters=[IngestsQuery])
class IngestsView(ListView[Ingest]):
    """The jobs, the latest first."""

    scope = Scope.DOCUMENTS
    serializer_class = IngestSerializer
    query_form = IngestsQuery
    chosen_by = {"status": "status"}
    queryset = Ingest.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Ingest]:
        """Those of collections that the key reaches, or those asked for."""
        reach = reach_of(self.request)
        ingests = self.choose(reach.within(Ingest.objects.select_related("collection")))
        if name := self.query.get("collection"):
            reach.check([name])
            ingests = ingests.filter(collection__in=collections_named([name]))
        return ingests


class IngestView(APIView):
    """A job as it stands."""

    scope = Scope.DOCUMENTS

    @extend_schema(responses=IngestDetail, parameters=[ItemsQuery])
    def get(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Return how far it is, and a page of its items with what became of each."""
        return Response(ingest_detail(find_job(request, ingest_id), request))


class CancelView(APIView):
    """The end of a job nobody needs any more."""

    scope = Scope.DOCUMENTS

    @extend_schema(request=None, responses=IngestDetail)
    def post(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Stop the job. What it stored stays; one that has ended stays as it is."""
        jobs.cancel(find_job(request, ingest_id).pk)
        return Response(ingest_detail(find_job(request, ingest_id), request))


class RetryView(APIView):
    """Another attempt at what failed."""

    scope = Scope.DOCUMENTS

    @extend_schema(request=None, responses={202: IngestDetail, 409: None})
    def post(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Queue an ended job again for what failed or was not reached."""
        job = find_job(request, ingest_id)
        if not jobs.retry(job.pk):
            raise jobs.NothingToRetry
        enqueue(job)
        return Response(ingest_detail(find_job(request, ingest_id), request), status=202)


def find_job(request: Request, ingest_id: uuid.UUID) -> Ingest:
    """Return the job with its collection, if the key of a request reaches it. Raises Http404."""
    jobs_in_reach = reach_of(request).within(Ingest.objects.select_related("collection"))
    return get_object_or_404(jobs_in_reach, pk=ingest_id)
