"""Admin of the agents: turns, reports, faults, tool calls and queues."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import Truncator
from django.utils.timezone import now
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents.models import Envelope, Fault, Report, ToolRun
from agents.names import Status
from agents.steps.records import payloads_before
from agents.tools.tool import ToolOutcome
from agents.trace.breakdown import breakdown
from agents.trace.metrics import overview
from agents.trace.queues import LATE_SECONDS
from agents.trace.tool_use import role_figures, runs_by_step, tool_figures, trajectory
from agents.trace.trace import (
    judged_requirements,
    plan_steps,
    search_rounds,
    specialists_found,
    timeline,
)
from agents.trace.usage import calls_of, usage_of_calls
from agents.usage_admin import BudgetAdmin, ModelCallAdmin, PriceAdmin
from knowledge.models import Collection
from knowledge.read_only_admin import RecordAdmin, pretty
from knowledge.safe_html import html

__all__ = (
    "BudgetAdmin",
    "EnvelopeAdmin",
    "FaultAdmin",
    "ModelCallAdmin",
    "PriceAdmin",
    "ReportAdmin",
    "ToolRunAdmin",
    "queues_page",
)

STATUS_COLOURS: dict[str, str] = {
    Status.RUNNING: "info",
    Status.COMPLETED: "success",
    Status.AWAITING_USER: "warning",
    Status.WITH_STAFF: "warning",
    Status.EXPIRED: "warning",
    Status.FAILED: "danger",
}
FIGURES_WINDOW = timedelta(days=30)
# Of what a tool gave, so much is shown beside a step; the page of its call has it whole.
SHOWN = 400
REPORT_SHOWN = 300_000  # characters


class Planned(admin.SimpleListFilter):
    """Whether the turn had a plan, as an analysis has."""

    title, parameter_name = "plan", "plan"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the one choice."""
        return [("yes", "analysis with a plan")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return turns with a plan."""
        return queryset.filter(payload__has_key="analysis_plan") if self.value() else queryset


@admin.register(Envelope)
class EnvelopeAdmin(RecordAdmin):
    """Turns: what was asked and replied, what each role decided, and every step."""

    record_template = "agents/envelope.html"
    list_display = ("question", "state", "route", "steps", "work", "error_id", "began")
    list_display_links = ("question",)
    list_filter = ("status", Planned, "create_ts")
    search_fields = ("id", "conversation_id", "error_id", "memory__text")
    search_help_text = "Id of a turn or a conversation, error number, or words of the question"
    date_hierarchy = "create_ts"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Envelope]:
        """Turns with what the list says about them, without their payloads."""
        turns: QuerySet[Envelope] = super().get_queryset(request)
        return turns.annotate(text=KT("memory__text"), chosen_route=KT("payload__route")).defer(
            "memory", "payload"
        )

    def record(self, row: Any) -> dict[str, Any]:
        """Return the turn with its steps drawn and its payload as text."""
        calls = list(calls_of(row.pk).defer("request"))
        steps = list(row.steps.all())
        spans = timeline(row, steps, calls)
        citations = row.payload.get("citations_used") or ()
        runs = runs_by_step(row.pk)
        return {
            "row": row,
            "question": row.memory.get("text", ""),
            "plan": plan_steps(row),
            "estimate": (row.payload.get("analysis_plan") or {}).get("estimate"),
            "requirements": judged_requirements(row.payload),
            "found": specialists_found(row.payload),
            "spans": [
                {
                    "span": span,
                    "wrote": pretty(span.step.output) if span.step.output else "",
                    "runs": runs[span.step.number],
                    "trajectory": [
                        each | {"seen": Truncator(pretty(each.get("result"))).chars(SHOWN)}
                        for each in trajectory(
                            [mark.call for mark in span.marks], runs[span.step.number]
                        )
                    ],
                }
                for span in spans
            ],
            "reply": html(row.payload.get("response") or ""),
            "cited": list({each["marker"]: each for each in citations}.values()),
            "rounds": search_rounds(steps, list(payloads_before(row, steps))),
            "decisions": breakdown(row, steps),
            "faults": row.faults.all(),
            "usage": usage_of_calls(calls_of(row.pk)) if calls else None,
        }

    @display(description="Question", ordering="text")
    def question(self, envelope: Any) -> str:
        """The beginning of what was asked."""
        return Truncator(envelope.text or str(envelope.pk)).chars(80)

    @display(description="Status", ordering="status", label=STATUS_COLOURS)
    def state(self, envelope: Envelope) -> tuple[str, str]:
        """Where it stands."""
        return envelope.status, envelope.get_status_display()

    @display(description="Route", ordering="chosen_route")
    def route(self, envelope: Any) -> str:
        """The route the turn took."""
        return envelope.chosen_route or ""

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


@admin.register(Report)
class ReportAdmin(RecordAdmin):
    """Analysis reports: what `analyse` found, to be read; who may delete reports deletes them."""

    record_template = "agents/report.html"
    list_display = ("title", "collection", "came_to", "created")
    list_filter = ("collection", "created")
    search_fields = ("title", "text")
    date_hierarchy = "created"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Report]:
        """Reports without their texts."""
        reports: QuerySet[Report] = super().get_queryset(request)
        return reports.defer("text")

    def record(self, row: Any) -> dict[str, Any]:
        """Return the report with its text as a reader sees it."""
        return {
            "row": row,
            "text": html(row.text[:REPORT_SHOWN]),
            "is_cut": len(row.text) > REPORT_SHOWN,
            "home": Collection.objects.filter(name=row.collection).first(),
        }

    @display(description="Came to")
    def came_to(self, report: Report) -> str:
        """What the requirements came to."""
        return ", ".join(f"{count} {what}" for what, count in report.counts.items() if count)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may delete reports."""
        return ModelAdmin.has_delete_permission(self, request, obj)


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


@admin.register(ToolRun)
class ToolRunAdmin(RecordAdmin):
    """Tool calls: what was given, what came back whole, and how often each tool and role fails."""

    record_template = "agents/tool_run.html"
    list_before_template = "agents/tool_figures.html"  # type: ignore[assignment]  # Unfold: None
    list_display = ("created", "role", "tool", "state", "attempts", "took")
    list_display_links = ("created", "tool")
    list_filter = ("outcome", "role", "tool", "created")
    search_fields = ("envelope__id", "tool", "error", "error_id")
    search_help_text = "Id of a turn, name of a tool, error number, or words of an error"
    date_hierarchy = "created"
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ToolRun]:
        """Calls without what was given and returned, which only their own pages show."""
        runs: QuerySet[ToolRun] = super().get_queryset(request)
        return runs.defer("arguments", "result")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the figures of each tool and role above the calls."""
        since = now() - FIGURES_WINDOW
        context: Any = {"figures": {"Tool": tool_figures(since), "Role": role_figures(since)}}
        return super().changelist_view(request, context | (extra_context or {}))

    def record(self, row: Any) -> dict[str, Any]:
        """Return the call with its two sides as text."""
        return {"row": row, "arguments": pretty(row.arguments), "result": pretty(row.result)}

    @display(
        description="Outcome",
        ordering="outcome",
        label={each.value: "success" if each == "ok" else "danger" for each in ToolOutcome},
    )
    def state(self, run: ToolRun) -> tuple[str, str]:
        """What it came to."""
        return run.outcome, run.outcome

    @display(description="Took", ordering="seconds")
    def took(self, run: ToolRun) -> str:
        """Milliseconds until it was done."""
        return f"{run.seconds * 1000:,.0f}\N{NO-BREAK SPACE}ms"


def queues_page(request: HttpRequest) -> HttpResponse:
    """Show every queue as it is now, to who may look at turns."""
    if not request.user.has_perm("agents.view_envelope"):
        raise PermissionDenied
    context = admin.site.each_context(request) | {
        "title": "Queues",
        "overview": overview(),
        "long": int(LATE_SECONDS),
    }
    return TemplateResponse(request, "agents/queues.html", context)
