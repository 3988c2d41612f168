"""Admin of the knowledge: collections to edit, documents and uploads to look into."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from knowledge.models import Chunk, Collection, Document, Ingest
from knowledge.records import RecordAdmin, pretty
from knowledge.rendering import html

# A book would keep the browser busy for long, and who looks wants to know what it is.
PREVIEW_CHARACTERS = 50_000
CHUNKS_SHOWN = 200
COLOURS: dict[str, str] = {
    Ingest.Status.RUNNING: "info",
    Ingest.Status.DONE: "success",
    Ingest.Status.FAILED: "danger",
}

Deletion = tuple[list[str], dict[str, int], set[str], list[str]]


def deletion(of: str, count: int, documents: QuerySet[Document]) -> Deletion:
    """Return what Django's confirmation asks for: counts, as a list of chunks would be endless."""
    pages = documents.count()
    chunks = Chunk.objects.filter(document__in=documents).count()
    counts = {of: count, "documents": pages, "chunks": chunks}
    sentence = f"{pages} document{'' if pages == 1 else 's'} with {chunks} chunks and their vectors"
    return [sentence], counts, set(), []


@admin.register(Collection)
class CollectionAdmin(ModelAdmin):
    """Collections: how they are called towards readers may be changed."""

    list_display = ("name", "title", "documents", "chunks", "created")
    search_fields = ("name", "title", "description")
    fields = ("name", "title", "description", "documents", "chunks", "created")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        """Collections with their sizes."""
        collections: QuerySet[Collection] = super().get_queryset(request)
        return collections.annotate(
            document_count=Count("documents", distinct=True),
            chunk_count=Count("documents__chunks"),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """The name stays: the ids of its documents are made from it."""
        return (
            ("name", "documents", "chunks", "created")
            if obj
            else ("documents", "chunks", "created")
        )

    @display(description="Documents", ordering="document_count")
    def documents(self, collection: Any) -> int:
        """Number of documents."""
        return getattr(collection, "document_count", 0)

    @display(description="Chunks", ordering="chunk_count")
    def chunks(self, collection: Any) -> int:
        """Number of chunks."""
        return getattr(collection, "chunk_count", 0)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say how much goes with the collections."""
        names = [collection.pk for collection in objs]
        return deletion("collections", len(names), Document.objects.filter(collection__in=names))


@admin.register(Document)
class DocumentAdmin(RecordAdmin):
    """Documents with their chunks. What is in them comes from their files; one can be deleted."""

    record_template = "knowledge/document.html"
    list_display = ("title", "collection", "source", "language", "version", "chunks", "updated")
    list_filter = (("collection", admin.RelatedOnlyFieldListFilter), "language", "audience")
    list_select_related = ("collection",)
    search_fields = ("title", "source", "origin", "id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        """Documents with the number of their chunks, without their texts."""
        documents: QuerySet[Document] = super().get_queryset(request)
        return documents.annotate(chunk_count=Count("chunks")).defer("content", "summary")

    def record(self, row: Any) -> dict[str, Any]:
        """Return the document with its chunks and its text as a reader sees it."""
        return {
            "row": row,
            "chunks": row.chunks.defer("search")[:CHUNKS_SHOWN],
            "preview": html(row.content[:PREVIEW_CHARACTERS]),
            "is_cut": len(row.content) > PREVIEW_CHARACTERS,
        }

    @display(description="Chunks", ordering="chunk_count")
    def chunks(self, document: Any) -> int:
        """Number of chunks."""
        return int(document.chunk_count)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete documents."""
        return ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(self, objs: Iterable[Any], request: HttpRequest) -> Any:
        """Say how many chunks go with the documents."""
        ids = [document.pk for document in objs]
        return deletion("documents", len(ids), Document.objects.filter(pk__in=ids))


@admin.register(Ingest)
class IngestAdmin(RecordAdmin):
    """Uploads on their way in."""

    record_template = "knowledge/ingest.html"
    list_display = ("name", "collection", "state", "attempts", "created", "updated")
    list_filter = ("status", ("collection", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("collection",)
    search_fields = ("name", "error")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Ingest]:
        """Uploads without their bytes."""
        uploads: QuerySet[Ingest] = super().get_queryset(request)
        return uploads.select_related("collection").defer("body")

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, ingest: Ingest) -> tuple[str, str]:
        """Where it stands."""
        return ingest.status, ingest.get_status_display()

    def record(self, row: Any) -> dict[str, Any]:
        """Return the upload and what came of it."""
        return {"row": row, "report": pretty(row.report) if row.report else ""}
