"""Documents for staff: listed, taken in, looked into and deleted."""

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from django.conf import settings
from django.core.exceptions import TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.generics import RetrieveAPIView
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.api.access import reach_of
from knowledge.api.collection_api import ReceiptSerializer
from knowledge.api.ingest_api import IngestDetail, ingest_response
from knowledge.api.lists import ListView
from knowledge.api.sent import NOT_BLANK, PagesQuery, Sent
from knowledge.collections import DEFAULT_COLLECTION, collections_named, count
from knowledge.errors import Unreadable
from knowledge.identifiers import Scope
from knowledge.ingestion.jobs import enqueue
from knowledge.ingestion.plan import plan, reingest
from knowledge.ingestion.removal import delete
from knowledge.models import Chunk, Document, Ingest
from knowledge.models.documents import COLLECTION_NAME


def texts(**more: Any) -> serializers.ListField:
    """Return a field of a list of texts that is only read."""
    return serializers.ListField(child=serializers.CharField(), read_only=True, **more)


class DocumentSerializer(serializers.ModelSerializer[Document]):
    """One document without its text."""

    collection = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    crumbs = texts()
    keywords = texts()
    chunks = serializers.IntegerField(source="chunk_count", read_only=True)

    class Meta:
        model = Document
        fields: tuple[str, ...] = (
            "id",
            "collection",
            "source",
            "title",
            "crumbs",
            "description",
            "summary",
            "keywords",
            "version",
            "edition",
            "language",
            "audience",
            "last_updated",
            "chunks",
            "created",
            "updated",
        )


class DocumentDetail(DocumentSerializer):
    """One document with its text."""

    keypoints = texts()
    copies = serializers.SlugRelatedField[Any](
        many=True,
        read_only=True,
        slug_field="source",
        help_text="Other places where the same bytes lie.",
    )

    class Meta(DocumentSerializer.Meta):
        fields = (*DocumentSerializer.Meta.fields, "keypoints", "copies", "content")


class ChunkSerializer(serializers.ModelSerializer[Chunk]):
    """One chunk of a document; its neighbours are those with the numbers before and after."""

    section = texts(source="section.path", help_text="The headings above it, outermost first.")
    keywords = texts()

    class Meta:
        model = Chunk
        fields = ("id", "number", "section", "page", "tokens", "keywords", "text")


# A request is held in memory while its files are written down.
REQUEST_FILES = 5  # of the largest size allowed


class Intake(Sent):
    """Where what is sent goes."""

    collection = serializers.RegexField(
        COLLECTION_NAME,
        max_length=63,
        default=DEFAULT_COLLECTION,
        help_text="Made when it does not exist.",
        error_messages={
            "invalid": "'%(value)s' cannot name a collection: use 1 to 63 of a-z, 0-9, '-' and '_'."
        },
    )
    wait = serializers.BooleanField(
        default=True, help_text="Whether to answer when it is done, at the latest after 20 s."
    )


class Upload(Intake):
    """Files."""

    replace = serializers.BooleanField(default=False, help_text="Others of the same name.")
    file = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True),
        allow_empty=False,
        max_length=100,
        help_text="In any format that can be ingested; several parts may have this name.",
    )

    def validate_file(self, files: list[UploadedFile]) -> list[UploadedFile]:
        """Refuse what is too much, naming it."""
        limit = settings.MAX_UPLOAD_BYTES
        for file in files:
            if (file.size or 0) > limit:
                raise serializers.ValidationError(
                    f"{file.name} is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)."
                )
        if sum(file.size or 0 for file in files) > REQUEST_FILES * limit:
            raise serializers.ValidationError(
                f"Together the files are larger than {REQUEST_FILES * limit:,} bytes: "
                "send them in several requests."
            )
        return files


class Address(Intake):
    """Something on the web."""

    url = serializers.RegexField(
        r"^https?://\S",
        max_length=2000,
        help_text="A page, a file or a sitemap.",
        error_messages={"invalid": "Send an address that begins with http:// or https://."},
    )


def _names() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(allow_blank=True), required=False, max_length=100
    )


class SentDocument(Sent):
    """A document; what it has beside these fields is left out, with a warning."""

    takes_more = True
    content = serializers.RegexField(
        NOT_BLANK,
        trim_whitespace=False,
        help_text="Its text, as Markdown.",
        error_messages={"invalid": "This field may not be blank."},
    )
    title = serializers.CharField(required=False, allow_blank=True)
    source = serializers.CharField(  # type: ignore[assignment]  # a field of that name
        required=False,
        allow_blank=True,
        max_length=1000,
        help_text="Path or URL shown to the reader. Sent again, it replaces the document.",
    )
    language = serializers.CharField(required=False, allow_blank=True, help_text="Such as en.")
    audience = serializers.CharField(required=False, allow_blank=True, max_length=100)
    crumbs = _names()
    keywords = _names()


class WrappedDocument(Intake):
    """A document as an object of its own."""

    document = SentDocument()


class PlainDocument(Intake, SentDocument):
    """A document whose fields stand at the top."""

    takes_more = True


# What tells them apart → what is sent.
UPLOADS: dict[str, type[Intake]] = {
    "file": Upload,
    "url": Address,
    "document": WrappedDocument,
    "content": PlainDocument,
}
IN_JSON = PolymorphicProxySerializer(
    "Sent", [Address, WrappedDocument, PlainDocument], resource_type_field_name=None
)


def read_upload(data: Any) -> tuple[str, dict[str, Any]]:
    """Return the field that says what was sent, and what was sent. Raises ValidationError."""
    named = [name for name in UPLOADS if name in data] if isinstance(data, Mapping) else ["url"]
    if len(named) != 1:
        raise ValidationError("Send one or more files, or a url, or a document with its content.")
    (field,) = named
    upload = UPLOADS[field].read(data)
    # As it was sent: what is left out of it is told with its ingest.
    if field == "document":
        upload["document"] = data["document"]
    elif field == "content":
        upload["document"] = {name: data[name] for name in data if name not in Intake().fields}
    return ("document" if field == "content" else field), upload


def documents(request: Request) -> QuerySet[Document]:
    """Return the documents that the key of a request reaches, with the number of their chunks."""
    queryset = Document.objects.select_related("collection")
    reached = reach_of(request).within(queryset)
    return reached.annotate(chunk_count=count(Chunk, "document"))


def find_document(request: Request, pk: str) -> Document:
    """Return a document that the key of a request reaches. Raises Http404."""
    return get_object_or_404(reach_of(request).within(Document.objects.defer("content")), pk=pk)


class DocumentsQuery(PagesQuery):
    """What may stand behind `?` where documents are listed."""

    collection = serializers.CharField(required=False, help_text="Only of this one.")
    language = serializers.CharField(
        required=False, max_length=16, help_text="Only in this language, such as en."
    )
    source = serializers.CharField(  # type: ignore[assignment]  # a field of that name
        required=False, max_length=2000, help_text="Only the one from this place."
    )
    since = serializers.DateTimeField(
        required=False, help_text="Only those that were taken in or changed then or later."
    )


class DocumentsView(ListView[Document]):
    """The documents, and the way in for new ones."""

    scope = Scope.DOCUMENTS
    parser_classes = (MultiPartParser, JSONParser)
    serializer_class = DocumentSerializer
    query_form = DocumentsQuery
    chosen_by = {"language": "language", "source": "source", "since": "updated__gte"}

    def get_queryset(self) -> QuerySet[Document]:
        """Those that the key reaches, or those chosen of them, without their texts."""
        queryset = self.choose(documents(self.request).defer("content"))
        if name := self.query.get("collection"):
            reach_of(self.request).check([name])
            queryset = queryset.filter(collection__in=collections_named([name]))
        return queryset

    @extend_schema(parameters=[DocumentsQuery])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List documents, fifty a page."""
        return super().get(request, *args, **kwargs)

    @extend_schema(
        request={"multipart/form-data": Upload, "application/json": IN_JSON},
        responses={201: IngestDetail, 202: IngestDetail, 409: None},
    )
    def post(self, request: Request) -> Response:
        """Ingest what is sent: 201 when it is in, 202 when it takes longer, 400 if unfit.

        Of several files, those that can be read are taken in; `items` has what became of each.
        """
        field, upload = read_upload(request_data(request))
        reach_of(request).check([upload["collection"]])
        job = plan_upload(upload, field)
        enqueue(job)
        return ingest_response(job, request, wait=upload["wait"], field=field)


class DocumentView(RetrieveAPIView[Document]):
    """One document."""

    scope = Scope.DOCUMENTS
    serializer_class = DocumentDetail

    def get_queryset(self) -> QuerySet[Document]:
        """Any document that the key reaches."""
        return documents(self.request).prefetch_related("copies")

    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return it with its text."""
        return super().get(request, *args, **kwargs)

    @extend_schema(responses={200: ReceiptSerializer})
    def delete(self, request: Request, pk: str) -> Response:
        """Delete it with all that was made of it, and return a receipt of what was removed."""
        document = find_document(request, pk)
        receipt = delete([document], by=request.user.get_username(), reason="asked for by API")
        return Response(ReceiptSerializer(receipt).data)


class ReingestView(APIView):
    """Another reading of a document."""

    scope = Scope.DOCUMENTS

    @extend_schema(request=None, responses={201: IngestDetail, 202: IngestDetail})
    def post(self, request: Request, pk: str) -> Response:
        """Take it in anew, from its file or address where one is known, else from its text."""
        job = reingest(find_document(request, pk))
        enqueue(job)
        return ingest_response(job, request, wait=True, field="document")


def request_data(request: Request) -> Any:
    """Return the body. Raises ValidationError when it holds more files than are taken at once."""
    try:
        return request.data
    except TooManyFilesSent as error:
        raise ValidationError({"file": ["Send at most 100 files in one request."]}) from error


def plan_upload(upload: dict[str, Any], field: str) -> Ingest:
    """Return the job for what was sent. Raises KnowledgeError and ValidationError."""
    if field != "url":
        replace = upload.get("replace", field == "document")  # which says what it replaces
        return plan(upload["collection"], uploads=uploaded_files(upload), replace=replace)
    try:
        return plan(upload["collection"], urls=[upload["url"]])
    except Unreadable as error:
        raise ValidationError({"url": [f"{upload['url']}: {error}"]}) from error


def uploaded_files(upload: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each file that was sent."""
    for file in upload.get("file", ()):
        yield file.name or "upload", file.read()
    if "document" in upload:
        # Named by what it is, so that sending it again replaces it and nothing else.
        identity = document_identity(upload["document"]).encode(errors="backslashreplace")
        body = json.dumps(upload["document"]).encode()
        yield f"{blake2b(identity, digest_size=8).hexdigest()}.json", body


def document_identity(document: Any) -> str:
    """Return what tells a document from others."""
    fields = document if isinstance(document, dict) else {}
    return str(fields.get("source") or fields.get("title") or json.dumps(document))


class ChunksView(ListView[Chunk]):
    """The chunks of a document in the order of its text."""

    scope = Scope.DOCUMENTS
    serializer_class = ChunkSerializer
    queryset = Chunk.objects.none()  # tells the schema what it is about

    def get_queryset(self) -> QuerySet[Chunk]:
        """Those of the document in the address."""
        document = find_document(self.request, self.kwargs["pk"])
        return document.chunks.select_related("section")
