"""Ingests: jobs on their way in, with progress that moves."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from knowledge.models import Ingest, Item
from knowledge.records import RecordAdmin, pretty

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
    list_display = ("name", "collection", "state", "finished", "skipped", "created", "ended")
    list_filter = ("status", ("collection", admin.RelatedOnlyFieldListFilter))
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
