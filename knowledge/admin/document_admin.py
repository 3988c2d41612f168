"""Documents: added, looked into, taken in anew and deleted; their history and their ingests."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import Count, Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin
from unfold.decorators import display

from knowledge.admin.collection_admin import delete_with_receipt, deletion_summary
from knowledge.admin.document_filters import (
    CITED_DAYS,
    AgeFilter,
    CitedFilter,
    FormatFilter,
    StatusFilter,
    citation_count,
)  # fmt: skip
from knowledge.admin.document_orders import DocumentOrders
from knowledge.admin.search_box import search_context
from knowledge.collections import DEFAULT_COLLECTION, count
from knowledge.ingestion.sources import ZIP
from knowledge.models import Chunk, Collection, Document, Ingest, Item, Version
from knowledge.parsing import FORMATS
from knowledge.read_only_admin import RecordAdmin, pretty
from knowledge.safe_html import html
from knowledge.versions import (
    TooLong,
    answers_citing,
    differences,
    replacement_time,
    version,
    versions,
)

ANSWERS_SHOWN = 100


def history(document: Document, change: str) -> dict[str, Any]:
    """Return what the page of a document tells of its past.

    `change` is the number of the version whose difference to the one before it is shown.
    """
    answers = answers_citing(document)
    citation_counts = Counter(answer.version for answer in answers)
    kept_versions = versions(document)
    before = {new.number: old.number for new, old in pairwise(kept_versions)}
    return {
        "versions": [
            {
                "number": kept_version.number,
                "edition": kept_version.edition,
                "title": kept_version.title,
                "created": kept_version.created,
                "replaced": replacement_time(kept_version),
                "before": before.get(kept_version.number),
                "answers": citation_counts[kept_version.number],
            }
            for kept_version in kept_versions
        ],
        "answers": answers[:ANSWERS_SHOWN],
        "answer_count": len(answers),
        "outdated_count": sum(
            count for number, count in citation_counts.items() if number != document.version
        ),
        "difference": version_difference(document, before, change),
    }


def version_difference(
    document: Document, before: dict[int, int], change: str
) -> dict[str, Any] | None:
    """Return the lines that a version changed; None when there is nothing to compare it with."""
    number = int(change) if change.isdecimal() and len(change) < 9 else 0
    if number not in before:
        return None
    try:
        old, new = version(document, before[number]), version(document, number)
        lines = differences(old.content, new.content)
    except Version.DoesNotExist:
        # Another process replaced the document just now.
        return None
    except TooLong:
        return {"number": number, "before": before[number], "is_too_long": True}
    return {"number": number, "before": before[number], "lines": lines}


# A book would keep the browser busy for long, and who looks wants to know what it is.
PREVIEW_CHARACTERS = 50_000
CHUNKS_A_PAGE = 100
RECENT_JOBS = 5
# Stands in an address for the id of a job that does not exist yet.
BLANK = "00000000-0000-0000-0000-000000000000"
# Stands for a collection that does not exist yet; none can be called so.
NEW = "+"


@admin.register(Document)
class DocumentAdmin(DocumentOrders):
    """Documents with their chunks. What is in them comes from their files, which staff may mend."""

    record_template = "knowledge/document.html"
    list_before_template = "knowledge/shelves.html"  # type: ignore[assignment]  # Unfold: None
    list_display = ("called", "collection", "language", "chunks", "cited", "updated")
    list_filter = (
        StatusFilter,
        ("collection", admin.RelatedOnlyFieldListFilter),
        AgeFilter,
        CitedFilter,
        FormatFilter,
        "language",
        "audience",
    )
    list_select_related = ("collection",)
    search_fields = ("title", "source", "origin", "id")
    actions = ("take_in_anew", "move_chosen", "set_audience", "export_chosen")

    def get_urls(self) -> list[URLPattern]:
        """Add the search box."""
        guarded = self.admin_site.admin_view
        return [
            path("search/", guarded(self.search_view), name="knowledge_document_search"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        """Documents with the number of their chunks, without their texts."""
        documents: QuerySet[Document] = super().get_queryset(request)
        return documents.annotate(
            chunk_count=count(Chunk, "document"), citations=citation_count()
        ).defer("content", "summary")

    def record(self, row: Any) -> dict[str, Any]:
        """Return the document with its text as a reader sees it."""
        return {
            "row": row,
            "copies": row.copies.all()[:50],
            "relations": row.relations.count(),
            "cited": row.citations,
            "edits": [(name, edit["over"][-1]) for name, edit in row.edits.items()],
        }

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the document with the page of its chunks and the change that were asked for."""
        context: dict[str, Any] = {}
        row = self.get_object(request, object_id)
        if isinstance(row, Document) and self.has_view_permission(request, row):
            context["chunks"] = chunk_page(row, request.GET)
            context |= history(row, request.GET.get("change", ""))
            context |= preview(row, request.GET.get("version", ""))
            context["may_reingest"] = self.has_add_permission(request)
            if self.has_order_permission(request):
                context |= {
                    "may_order": True,
                    "homes": Collection.objects.exclude(pk=row.collection_id),
                    "audiences": Document.objects.exclude(audience="")
                    .order_by("audience")
                    .values_list("audience", flat=True)
                    .distinct()[:100],
                }
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the page that sends files and addresses to the API."""
        if not self.has_add_permission(request) or request.method != "GET":
            raise PermissionDenied
        collections = list(Collection.objects.values_list("name", "title"))
        names = [name for name, _ in collections]
        wanted = request.GET.get("collection", DEFAULT_COLLECTION)
        only = names[0] if len(names) == 1 else ""
        chosen = wanted if wanted in names else only
        context = self.admin_site.each_context(request) | {
            "title": "Add documents",
            "opts": self.opts,
            "collections": collections,
            "chosen": chosen,
            "usual": DEFAULT_COLLECTION,
            "new": NEW,
            "formats": (*FORMATS, ZIP),
            "limit": settings.MAX_UPLOAD_BYTES,
            "blank": BLANK,
            "recent": Ingest.objects.filter(kind=Ingest.Kind.INGEST).values_list("pk", flat=True)[
                :RECENT_JOBS
            ],
        }
        return TemplateResponse(request, "knowledge/adding.html", context)

    def search_view(self, request: HttpRequest) -> HttpResponse:
        """Show the search box, and what a question finds."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = self.admin_site.each_context(request) | {
            "title": "Try a search",
            "opts": self.opts,
        }
        return TemplateResponse(
            request, "knowledge/search.html", context | search_context(request.GET)
        )

    @display(description="Document", ordering="title", header=True)
    def called(self, document: Any) -> list[str]:
        """Its title, and below it its source."""
        return [document.title, f"{document.source} · version {document.version}"]

    @display(description=f"Cited, {CITED_DAYS} days", ordering="citations")
    def cited(self, document: Any) -> int:
        """Number of answers of the last days that cite it."""
        return int(document.citations)

    @display(description="Chunks", ordering="chunk_count")
    def chunks(self, document: Any) -> int:
        """Number of chunks."""
        return int(document.chunk_count)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whoever may add documents."""
        return ModelAdmin.has_add_permission(self, request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete documents."""
        return ModelAdmin.has_delete_permission(self, request, obj)

    def get_deleted_objects(self, objs: Iterable[Any], request: HttpRequest) -> Any:
        """Say how many chunks go with the documents."""
        ids = [document.pk for document in objs]
        return deletion_summary("documents", len(ids), Document.objects.filter(pk__in=ids))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the document and give a receipt."""
        self.delete_queryset(request, Document.objects.filter(pk=obj.pk))

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Go back to the list; Django would leave for the index, as nobody may change one."""
        return HttpResponseRedirect(reverse("admin:knowledge_document_changelist"))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Delete the documents and give a receipt."""
        chosen = Document.objects.filter(pk__in=queryset.order_by().values("pk"))
        delete_with_receipt(request, chosen, "asked for in the admin")


def preview(document: Document, wanted: str) -> dict[str, Any]:
    """Return what a version says as a reader sees it: that of `?version=`, or the latest."""
    number = int(wanted) if wanted.isdecimal() and len(wanted) < 9 else document.version
    try:
        shown = version(document, number)
    except Version.DoesNotExist:
        return {"shown": None, "wanted": number}
    return {
        "shown": shown,
        "wanted": number,
        "preview": html(shown.content[:PREVIEW_CHARACTERS]),
        "is_cut": len(shown.content) > PREVIEW_CHARACTERS,
    }


def chunk_page(document: Document, query: QueryDict) -> Page[Chunk]:
    """Return the page of its chunks that `?chunks=` names, or that holds the one of `?chunk=`."""
    pages = Paginator(document.chunks.select_related("section"), CHUNKS_A_PAGE)
    number = query.get("chunk", "")
    if number.isdecimal() and len(number) < 9:
        return pages.get_page((int(number) - 1) // CHUNKS_A_PAGE + 1)
    return pages.get_page(query.get("chunks"))


COLOURS: dict[str, str] = {
    Ingest.Status.RUNNING: "info",
    Ingest.Status.DONE: "success",
    Ingest.Status.FAILED: "danger",
    Ingest.Status.CANCELLED: "warning",
}


@admin.register(Ingest)
class IngestAdmin(RecordAdmin):
    """Jobs: each shows how far it is; it can be cancelled, and what failed tried again."""

    record_template = "knowledge/ingest.html"
    list_before_template = "knowledge/tasks.html"  # type: ignore[assignment]  # Unfold: None
    list_display = (
        "name",
        "collection",
        "kind",
        "state",
        "finished",
        "skipped",
        "created",
        "ended",
    )
    list_filter = ("status", "kind", ("collection", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("collection",)
    search_fields = ("name", "error", "items__origin")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Ingest]:
        """Jobs with what became of their items."""
        jobs: QuerySet[Ingest] = super().get_queryset(request)
        waiting = Q(items__status=Item.Status.WAITING)
        skipped = Q(items__status=Item.Status.SKIPPED)
        return jobs.select_related("collection").annotate(
            item_count=Count("items"),
            finished_count=Count("items", filter=~waiting),
            skipped_count=Count("items", filter=skipped),
        )

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, ingest: Ingest) -> tuple[str, str]:
        """Where it stands."""
        return ingest.status, ingest.get_status_display()

    @display(description="Finished", ordering="finished_count")
    def finished(self, ingest: Any) -> str:
        """How many of its items."""
        return f"{ingest.finished_count} of {ingest.item_count}"

    @display(description="Skipped", ordering="skipped_count")
    def skipped(self, ingest: Any) -> int:
        """How many of its items could not be read."""
        return int(ingest.skipped_count)

    def record(self, row: Any) -> dict[str, Any]:
        """Return the job and what came of it."""
        return {"row": row, "report": pretty(row.report) if row.report else ""}
