"""Turns: envelopes with their steps and model calls, and the faults users were told the code of."""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import HttpRequest
from django.utils.text import Truncator
from unfold.decorators import display

from agents.models import Envelope, Fault
from agents.names import Status
from agents.timeline import timeline
from agents.usage import calls_of, spent
from knowledge.records import RecordAdmin, pretty

COLOURS: dict[str, str] = {
    Status.RUNNING: "info",
    Status.COMPLETED: "success",
    Status.AWAITING_USER: "warning",
    Status.EXPIRED: "warning",
    Status.FAILED: "danger",
}
EMPTY: tuple[Any, ...] = (None, "", [], {})


@admin.register(Envelope)
class EnvelopeAdmin(RecordAdmin):
    """Turns: what was asked, every step of the answer, and all that is in the payload."""

    record_template = "agents/envelope.html"
    list_display = ("question", "state", "route", "steps", "work", "error_id", "began")
    list_display_links = ("question",)
    list_filter = ("status", "create_ts")
    search_fields = ("id", "conversation_id", "error_id", "memory__text")
    search_help_text = "Id of a turn or a conversation, error number, or words of the question"
    date_hierarchy = "create_ts"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Envelope]:
        """Turns with what the list says about them, without their payloads."""
        turns: QuerySet[Envelope] = super().get_queryset(request)
        return turns.annotate(asked=KT("memory__text"), routed=KT("payload__route")).defer(
            "memory", "payload"
        )

    def record(self, row: Any) -> dict[str, Any]:
        """Return the turn with its steps drawn and its payload as text."""
        calls = list(calls_of(row.pk).defer("request", "reply"))
        spans = timeline(row, list(row.steps.all()), calls)
        payload = sorted(row.payload.items())
        return {
            "row": row,
            "question": row.memory.get("text", ""),
            "spans": [
                (span, pretty(span.step.output) if span.step.output else "") for span in spans
            ],
            "payload": [(name, pretty(value)) for name, value in payload if value not in EMPTY],
            "empty": [name for name, value in payload if value in EMPTY],
            "faults": row.faults.all(),
            "usage": spent(calls_of(row.pk)) if calls else None,
        }

    @display(description="Question", ordering="asked")
    def question(self, envelope: Any) -> str:
        """The beginning of what was asked."""
        return Truncator(envelope.asked or str(envelope.pk)).chars(80)

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, envelope: Envelope) -> tuple[str, str]:
        """Where it stands."""
        return envelope.status, envelope.get_status_display()

    @display(description="Route", ordering="routed")
    def route(self, envelope: Any) -> str:
        """The route the turn took."""
        return envelope.routed or ""

    @display(description="Steps", ordering="step_count")
    def steps(self, envelope: Envelope) -> int:
        """Number of steps so far."""
        return envelope.step_count

    @display(description="Work", ordering="total_processing_time")
    def work(self, envelope: Envelope) -> str:
        """Milliseconds of work, waiting left out."""
        return f"{envelope.total_processing_time * 1000:,.0f}\N{NO-BREAK SPACE}ms"

    @display(description="Began", ordering="create_ts")
    def began(self, envelope: Envelope) -> datetime:
        """When the message was taken."""
        return envelope.create_ts


@admin.register(Fault)
class FaultAdmin(RecordAdmin):
    """Faults, found by the code the user was shown."""

    record_template = "agents/fault.html"
    list_display = ("code", "role", "short", "created")
    list_filter = ("role", "created")
    search_fields = ("code", "summary")
    search_help_text = "Error number, or words of the error"

    @display(description="Summary")
    def short(self, fault: Fault) -> str:
        """The beginning of the summary."""
        return Truncator(fault.summary).chars(120)
