"""Collections as they may be edited, and receipts of deletions."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import display

from knowledge.admin.collection_upkeep import CollectionUpkeep, upkeep_context
from knowledge.collections import with_sizes
from knowledge.ingestion.removal import delete
from knowledge.models import Chunk, Collection, Document, Receipt
from knowledge.read_only_admin import RecordAdmin

Deletion = tuple[list[str], dict[str, int], set[str], list[str]]


def deletion_summary(kind: str, count: int, documents: QuerySet[Document]) -> Deletion:
    """Return what Django's confirmation asks for: counts, as a list of chunks would be endless."""
    pages = documents.count()
    chunks = Chunk.objects.filter(document__in=documents).count()
    counts = {kind: count, "documents": pages, "chunks": chunks}
    sentence = f"{pages} document{'' if pages == 1 else 's'} with {chunks} chunks and their vectors"
    return [sentence], counts, set(), []


def delete_with_receipt(request: HttpRequest, documents: QuerySet[Document], reason: str) -> None:
    """Delete the documents in the name of whoever asks, and show a link to the receipt."""
    documents_to_delete = list(documents.defer("content"))
    if not documents_to_delete:
        return
    receipt = delete(documents_to_delete, by=request.user.get_username(), reason=reason)
    message = '{} document{} deleted: <a class="underline" href="{}">The receipt</a>.'
    page = reverse("admin:knowledge_receipt_change", args=[receipt.pk])
    messages.success(
        request,
        format_html(
            message, len(documents_to_delete), "" if len(documents_to_delete) == 1 else "s", page
        ),
    )


@admin.register(Collection)
class CollectionAdmin(CollectionUpkeep):
    """Collections: how they are called towards readers may be changed."""

    list_display = ("name", "title", "documents", "chunks", "embedding_model", "calibrated")
    search_fields = ("name", "title", "description")
    fields = ("name", "title", "description", "only_by_name")
    change_form_after_template = "knowledge/collection.html"  # type: ignore[assignment]

    class Media:
        css = {"all": ("knowledge/records.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        """Collections with their sizes."""
        collections: QuerySet[Collection] = super().get_queryset(request)
        return with_sizes(collections)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """The name stays: the ids of its documents are made from it."""
        return ("name",) if obj else ()

    @display(description="Documents", ordering="document_count")
    def documents(self, collection: Any) -> int:
        """Number of documents."""
        return int(collection.document_count)

    @display(description="Chunks", ordering="chunk_count")
    def chunks(self, collection: Any) -> int:
        """Number of chunks."""
        return int(collection.chunk_count)

    @display(description="Threshold", ordering="threshold")
    def calibrated(self, collection: Any) -> str:
        """The calibrated threshold, or that of the settings."""
        if collection.threshold is None:
            return f"{settings.SEARCH_CONFIDENCE_THRESHOLD:.2f}, not calibrated"
        return f"{collection.threshold:.2f}"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show below the form what it holds and how it is searched."""
        context: dict[str, Any] = {"default_threshold": settings.SEARCH_CONFIDENCE_THRESHOLD}
        row = self.get_object(request, object_id)
        if isinstance(row, Collection) and self.has_view_permission(request, row):
            context |= upkeep_context(row)
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say how much goes with the collections."""
        names = [collection.pk for collection in objs]
        return deletion_summary(
            "collections", len(names), Document.objects.filter(collection__in=names)
        )

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the collection with its documents, and give a receipt."""
        self.delete_queryset(request, Collection.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        """Delete the collections with their documents, and give a receipt for each."""
        for collection in queryset:
            with transaction.atomic():
                # A job locks its own row first, then the collection's documents.
                list(collection.ingests.select_for_update().values_list("pk"))
                delete_with_receipt(request, collection.documents.all(), "its collection went")
                collection.delete()


@admin.register(Receipt)
class ReceiptAdmin(RecordAdmin):
    """Receipts: they stay."""

    record_template = "knowledge/receipt.html"
    list_display = ("created", "collection", "documents", "by", "reason", "answers")
    list_filter = ("collection", "created")
    search_fields = ("id", "collection", "by", "reason", "documents")
    search_help_text = "Collection, who asked for it, or title or source of a document"

    def record(self, row: Any) -> dict[str, Any]:
        """Return the receipt with its kinds of rows in words."""
        removed = [(kind.replace("_", " "), count) for kind, count in row.removed.items()]
        return {"row": row, "removed": removed}

    @display(description="Documents")
    def documents(self, receipt: Receipt) -> int:
        """Number of documents."""
        return len(receipt.documents)

    @display(description="Answers that relied on them")
    def answers(self, receipt: Receipt) -> int:
        """Number of answers that had cited one of them."""
        return len(receipt.answers)
