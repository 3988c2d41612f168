"""Ingests: how far each is; each can be stopped, and what failed tried again."""

import uuid

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.bell import ring
from knowledge.collections import named
from knowledge.ingestion import jobs
from knowledge.models import Ingest
from knowledge.serializers.ingests import (
    IngestDetail,
    IngestSerializer,
    IngestsQuery,
    ItemsQuery,
)
from knowledge.views.answers import detail

PAGE = OpenApiParameter("page", int, description="Page of the items, from 1.")
PAGE_SIZE = OpenApiParameter("page_size", int, description="Items a page, 50 unless told.")


@extend_schema(parameters=[IngestsQuery])
class IngestsView(ListAPIView[Ingest]):
    """The jobs, the latest first."""

    permission_classes = (IsAdminUser,)
    serializer_class = IngestSerializer
    queryset = Ingest.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Ingest]:
        """All of them, or those asked for."""
        query = IngestsQuery(data=self.request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        found = Ingest.objects.select_related("collection")
        if "collection" in asked:
            found = found.filter(collection__in=named([asked["collection"]]))
        return found.filter(status=asked["status"]) if "status" in asked else found


class IngestView(APIView):
    """A job as it stands."""

    permission_classes = (IsAdminUser,)

    @extend_schema(responses=IngestDetail, parameters=[ItemsQuery, PAGE, PAGE_SIZE])
    def get(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Return how far it is, and a page of its items with what became of each."""
        return Response(detail(job(ingest_id), request))


class CancelView(APIView):
    """The end of a job nobody needs any more."""

    permission_classes = (IsAdminUser,)

    @extend_schema(request=None, responses=IngestDetail)
    def post(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Stop the job. What it stored stays; one that has ended stays as it is."""
        jobs.cancel(job(ingest_id).pk)
        return Response(detail(job(ingest_id), request))


class RetryView(APIView):
    """Another attempt at what failed."""

    permission_classes = (IsAdminUser,)

    @extend_schema(request=None, responses={202: IngestDetail, 400: None})
    def post(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Queue an ended job again for what failed or was not reached."""
        found = job(ingest_id)
        if not jobs.retry(found.pk):
            raise jobs.JobError(
                "There is nothing to try again: all of it is in, or was uploaded and has to be "
                "sent again."
            )
        ring(found)
        return Response(detail(job(ingest_id), request), status=202)


def job(ingest_id: uuid.UUID) -> Ingest:
    """Return the job with its collection. Raises Http404."""
    return get_object_or_404(Ingest.objects.select_related("collection"), pk=ingest_id)
