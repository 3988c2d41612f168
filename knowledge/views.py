"""Views: documents for staff, listed and uploaded."""

import time
import uuid
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.bell import ring
from knowledge.ingestion.pipeline import collection_named
from knowledge.models import Document, Ingest
from knowledge.serializers import DocumentSerializer, IngestSerializer, Upload

# A page is ingested well within this; a book is not, and its client polls instead.
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.2


def documents() -> QuerySet[Document]:
    """Return all documents with the number of their chunks."""
    return Document.objects.select_related("collection").annotate(chunk_count=Count("chunks"))


class DocumentsView(ListAPIView[Document]):
    """The documents, and the way in for new ones."""

    permission_classes = (IsAdminUser,)
    parser_classes = (MultiPartParser, JSONParser)
    serializer_class = DocumentSerializer

    def get_queryset(self) -> QuerySet[Document]:
        """All of them, or those of `?collection=`."""
        name = self.request.query_params.get("collection")
        return documents().filter(collection__name=name) if name else documents()

    @extend_schema(request=Upload, responses={201: IngestSerializer, 202: IngestSerializer})
    def post(self, request: Request) -> Response:
        """Ingest one uploaded file: 201 when it is in, 202 when it takes longer, 400 if unfit."""
        body = Upload(data=request.data)
        body.is_valid(raise_exception=True)
        ingest = _wait(_queue(body.validated_data))
        if ingest.status == Ingest.Status.FAILED:
            raise ValidationError({"file": [ingest.error]})
        done = ingest.status == Ingest.Status.DONE
        return Response(IngestSerializer(ingest).data, status=201 if done else 202)


class DocumentView(RetrieveAPIView[Document]):
    """One document."""

    permission_classes = (IsAdminUser,)
    serializer_class = DocumentSerializer

    def get_queryset(self) -> QuerySet[Document]:
        """Any document."""
        return documents()


class IngestView(APIView):
    """An upload as it stands."""

    permission_classes = (IsAdminUser,)

    @extend_schema(responses=IngestSerializer)
    def get(self, request: Request, ingest_id: uuid.UUID) -> Response:
        """Return its status, and what came of it."""
        return Response(IngestSerializer(get_object_or_404(Ingest, pk=ingest_id)).data)


def _queue(said: dict[str, Any]) -> Ingest:
    file = said["file"]
    if file.size > settings.MAX_UPLOAD_BYTES:
        raise ValidationError(
            {"file": [f"The file is larger than {settings.MAX_UPLOAD_BYTES:,} bytes."]}
        )
    upload = Ingest.objects.create(
        collection=collection_named(said["collection"]),
        name=file.name or "upload",
        body=file.read(),
    )
    ring(upload)
    return upload


def _wait(ingest: Ingest) -> Ingest:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        ingest.refresh_from_db()
        if ingest.status in {Ingest.Status.DONE, Ingest.Status.FAILED}:
            break
        connection.close()
        time.sleep(POLL_SECONDS)
    return ingest
