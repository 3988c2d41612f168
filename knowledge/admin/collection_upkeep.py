"""Collection upkeep: the buttons of a collection's page, their jobs and what came of them."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from unfold.admin import ModelAdmin

from knowledge import reindex, upkeep
from knowledge.errors import KnowledgeError
from knowledge.identifiers import OWN_MODELS
from knowledge.ingestion.jobs import OPEN, cancel, enqueue
from knowledge.models import Collection, Ingest, Piece

Kind = Ingest.Kind
# What each button does, in the order they stand in, and what is written on it.
BUTTONS = {
    Kind.EVALUATE: ("Ask golden questions", "How many of the documents that answer are found."),
    Kind.CALIBRATE: ("Calibrate", "Find how sure a search must be before it counts as an answer."),
    Kind.REINDEX: ("Make vectors", "Fill in what is missing, or change the embedding model: it is "
                   "switched only if the new vectors find as much."),
    Kind.EXPORT: ("Export", "One file with documents, versions and vectors, to be imported "
                  "elsewhere."),
}  # fmt: skip
WRONG_SHOWN = 20


def upkeep_context(collection: Collection) -> dict[str, Any]:
    """Return what the page of a collection shows of its jobs: a row for each button."""
    rows = Ingest.objects.filter(collection=collection, kind__in=BUTTONS)
    latest = {job.kind: job for job in rows.order_by("kind", "-created").distinct("kind")}
    jobs = [
        {
            "kind": kind,
            "title": title,
            "purpose": purpose,
            "job": (job := latest.get(kind)),
            "is_open": job is not None and job.status in OPEN,
            "wrong": wrong(job) if job and kind is Kind.EVALUATE else [],
        }
        for kind, (title, purpose) in BUTTONS.items()
    ]
    archive = latest.get(Kind.EXPORT)
    return {
        "upkeep": jobs,
        "is_busy": any(each["is_open"] for each in jobs),
        "has_archive": archive is not None and archive.pieces.exists(),
        "models": sorted({*OWN_MODELS, *reindex.other_models(collection)}),
    }


def wrong(job: Ingest) -> list[dict[str, Any]]:
    """Return the golden questions that a search did not do right by."""
    return [row for row in job.report.get("rows", ()) if not row["right"]][:WRONG_SHOWN]


class CollectionUpkeep(ModelAdmin):
    """The part of the collections' admin that has jobs done."""

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses of the buttons, and that of the archive."""
        guarded = self.admin_site.admin_view
        return [
            path(
                "<int:object_id>/upkeep/<str:kind>/",
                guarded(self.upkeep_view),
                name="knowledge_collection_upkeep",
            ),
            path(
                "<int:object_id>/archive/",
                guarded(self.archive_view),
                name="knowledge_collection_archive",
            ),
            *super().get_urls(),
        ]

    def upkeep_view(self, request: HttpRequest, object_id: int, kind: str) -> HttpResponse:
        """Have something done, or stop it; pressed twice, it is done once."""
        if request.method != "POST" or not self.has_change_permission(request):
            raise PermissionDenied
        if kind not in BUTTONS:
            raise Http404
        collection = get_object_or_404(Collection, pk=object_id)
        if "cancel" in request.POST:
            running = Ingest.objects.filter(collection=collection, kind=kind, status__in=OPEN)
            for pk in running.values_list("pk", flat=True):
                cancel(pk)
        else:
            options = {"model": request.POST["model"]} if request.POST.get("model") else {}
            try:
                enqueue(upkeep.plan(collection, Kind(kind), **options))
            except KnowledgeError as error:
                messages.error(request, str(error))
        page = reverse("admin:knowledge_collection_change", args=[object_id])
        return redirect(f"{page}#upkeep")

    def archive_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Send the file of the latest export."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        collection = get_object_or_404(Collection, pk=object_id)
        pieces = Piece.objects.filter(ingest__collection=collection, ingest__status="done")
        if not pieces.exists():
            raise Http404
        bodies = pieces.order_by("number").values_list("body", flat=True)
        response = StreamingHttpResponse(
            (bytes(body) for body in bodies.iterator(chunk_size=1)),
            content_type="application/octet-stream",
        )
        name = f'attachment; filename="{collection.name}.docent"'
        response["Content-Disposition"] = name
        return response  # type: ignore[return-value]  # as Django's own annotation of views
