"""Views: documents for staff, listed and uploaded."""

import json
import time
import uuid
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.permissions import IsAdminUser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.bell import ring
from knowledge.collections import named
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
        return documents().filter(collection__in=named([name])) if name else documents()

    @extend_schema(
        parameters=[OpenApiParameter("collection", str, description="Only of this one.")]
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List documents, fifty a page."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=Upload, responses={201: IngestSerializer, 202: IngestSerializer})
    def post(self, request: Request) -> Response:
        """Ingest one uploaded file: 201 when it is in, 202 when it takes longer, 400 if unfit."""
        body = Upload(data=request.data)
        body.is_valid(raise_exception=True)
        said: dict[str, Any] = body.validated_data
        ingest = _wait(_queue(said))
        if ingest.status == Ingest.Status.FAILED:
            raise ValidationError({"file" if "file" in said else "document": [ingest.error]})
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
    name, body = _content(said)
    collection = collection_named(said["collection"])
    upload = Ingest.objects.create(collection=collection, name=name, body=body)
    ring(upload)
    return upload


def _content(said: dict[str, Any]) -> tuple[str, bytes]:
    """Return the name and the bytes of what was sent."""
    if "file" not in said:
        body = json.dumps(said["document"]).encode()
        # Named by what it is, so that sending it again replaces it and nothing else.
        identity = _identity(said["document"]).encode(errors="backslashreplace")
        return f"{blake2b(identity, digest_size=8).hexdigest()}.json", body
    file = said["file"]
    if file.size > settings.MAX_UPLOAD_BYTES:
        raise ValidationError(
            {"file": [f"The file is larger than {settings.MAX_UPLOAD_BYTES:,} bytes."]}
        )
    return file.name or "upload", file.read()


def _identity(document: Any) -> str:
    known = document if isinstance(document, dict) else {}
    return str(known.get("source") or known.get("title") or json.dumps(document))


def _wait(ingest: Ingest) -> Ingest:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        ingest.refresh_from_db()
        if ingest.status in {Ingest.Status.DONE, Ingest.Status.FAILED}:
            break
        connection.close()
        time.sleep(POLL_SECONDS)
    return ingest
