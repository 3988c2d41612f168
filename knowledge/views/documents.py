"""Documents: listed, taken in, and taken in anew."""

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from django.core.exceptions import TooManyFilesSent
from django.db.models import QuerySet
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
from knowledge.errors import Unreadable
from knowledge.ingestion.planning import plan, reingest
from knowledge.ingestion.removal import delete
from knowledge.models import Chunk, Document, Ingest
from knowledge.serializers.collections import ReceiptSerializer
from knowledge.serializers.documents import DocumentDetail, DocumentSerializer
from knowledge.serializers.ingests import IngestDetail
from knowledge.serializers.uploads import WAYS, Upload
from knowledge.sizes import count
from knowledge.views.answers import answer


def documents() -> QuerySet[Document]:
    """Return all documents with the number of their chunks."""
    found = Document.objects.select_related("collection")
    return found.annotate(chunk_count=count(Chunk, "document"))


class DocumentsView(ListAPIView[Document]):
    """The documents, and the way in for new ones."""

    permission_classes = (IsAdminUser,)
    parser_classes = (MultiPartParser, JSONParser)
    serializer_class = DocumentSerializer

    def get_queryset(self) -> QuerySet[Document]:
        """All of them, or those of `?collection=`, without their texts."""
        name = self.request.query_params.get("collection")
        found = documents().defer("content")
        return found.filter(collection__in=named([name])) if name else found

    @extend_schema(
        parameters=[OpenApiParameter("collection", str, description="Only of this one.")]
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List documents, fifty a page."""
        return super().get(request, *args, **kwargs)

    @extend_schema(request=Upload, responses={201: IngestDetail, 202: IngestDetail})
    def post(self, request: Request) -> Response:
        """Ingest what is sent: 201 when it is in, 202 when it takes longer, 400 if unfit.

        Of several files, those that can be read are taken in; `items` has what became of each.
        """
        body = Upload(data=data(request))
        body.is_valid(raise_exception=True)
        said: dict[str, Any] = body.validated_data
        field = next(way for way in WAYS if way in said)
        job = planned(said, field)
        ring(job)
        return answer(job, request, wait=said["wait"], field=field)


class DocumentView(RetrieveAPIView[Document]):
    """One document."""

    permission_classes = (IsAdminUser,)
    serializer_class = DocumentDetail

    def get_queryset(self) -> QuerySet[Document]:
        """Any document."""
        return documents().prefetch_related("copies")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return it with its text."""
        return super().get(request, *args, **kwargs)

    @extend_schema(responses=ReceiptSerializer)
    def delete(self, request: Request, pk: str) -> Response:
        """Delete it with all that was made of it, and return a receipt of what was removed."""
        document = get_object_or_404(Document.objects.defer("content"), pk=pk)
        receipt = delete([document], by=request.user.get_username(), reason="asked for by API")
        return Response(ReceiptSerializer(receipt).data)


class ReingestView(APIView):
    """Another reading of a document."""

    permission_classes = (IsAdminUser,)

    @extend_schema(request=None, responses={201: IngestDetail, 202: IngestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Take it in anew, from its file or address where one is known, else from its text."""
        job = reingest(get_object_or_404(Document, pk=pk))
        ring(job)
        return answer(job, request, wait=True, field="document")


def data(request: Request) -> Any:
    """Return the body. Raises ValidationError when it holds more files than are taken at once."""
    try:
        return request.data
    except TooManyFilesSent as error:
        raise ValidationError({"file": ["Send at most 100 files in one request."]}) from error


def planned(said: dict[str, Any], field: str) -> Ingest:
    """Return the job for what was sent. Raises KnowledgeError and ValidationError."""
    if field != "url":
        return plan(said["collection"], uploads=received(said))
    try:
        return plan(said["collection"], urls=[said["url"]])
    except Unreadable as error:
        raise ValidationError({"url": [f"{said['url']}: {error}"]}) from error


def received(said: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file that was sent."""
    for file in said.get("file", ()):
        yield file.name or "upload", file.read()
    if "document" in said:
        # Named by what it is, so that sending it again replaces it and nothing else.
        identity = identity_of(said["document"]).encode(errors="backslashreplace")
        body = json.dumps(said["document"]).encode()
        yield f"{blake2b(identity, digest_size=8).hexdigest()}.json", body


def identity_of(document: Any) -> str:
    """Return what tells a document from others."""
    known = document if isinstance(document, dict) else {}
    return str(known.get("source") or known.get("title") or json.dumps(document))
