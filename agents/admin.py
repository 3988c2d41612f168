"""Admin of the agents: turns, faults, queues, and what language models were asked and may cost."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.text import Truncator
from django.utils.timezone import now
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents.api import UsageQuery
from agents.llm.outcomes import UNHEARD, Outcome
from agents.models import Budget, Envelope, Fault, ModelCall, Price, Report, ToolRun
from agents.names import Status
from agents.steps.records import payloads_before
from agents.tools.tool import ToolOutcome
from agents.trace.breakdown import breakdown
from agents.trace.charts import Chart, Series
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
from agents.trace.usage import MOST_ROWS, PARTS, calls_of, figures, usage_of_calls
from knowledge.models import Collection
from knowledge.providers import parse_model_name, provider_names
from knowledge.read_only_admin import RecordAdmin, pretty
from knowledge.safe_html import html

STATUS_COLOURS: dict[str, str] = {
    Status.RUNNING: "info",
    Status.COMPLETED: "success",
    Status.AWAITING_USER: "warning",
    Status.WITH_STAFF: "warning",
    Status.EXPIRED: "warning",
    Status.FAILED: "danger",
}
MOST_DAYS = 400  # in a chart
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


@dataclass(frozen=True)
class Column:
    """One row of figures, and how long its bar is, in percent; text, or it would be localised."""

    row: dict[str, Any]
    width: str


def bars(rows: Sequence[dict[str, Any]]) -> list[Column]:
    """Return the rows with bars for what they cost, or for their tokens where nothing cost any."""
    measure = "priced_cost" if any(row["priced_cost"] for row in rows) else "tokens"
    sizes = [
        row["priced_cost"]
        if measure == "priced_cost"
        else row["input_tokens"] + row["output_tokens"]
        for row in rows
    ]
    most = max(sizes, default=0) or 1
    return [Column(row, f"{100 * size / most:.2f}") for row, size in zip(rows, sizes, strict=True)]


def day_charts(usage: dict[str, Any]) -> list[Chart]:
    """Return charts of usage by day, also of the days on which nothing was asked."""
    days = [
        usage["from"] + timedelta(days=day) for day in range((usage["to"] - usage["from"]).days + 1)
    ]
    rows = {row["name"]: row for row in usage["rows"]}
    found = [rows.get(f"{day}", {}) for day in days]
    times = [f"{day:%d %b}" for day in days]

    def series(name: str, colour: str, figure: str, nothing: float | None = 0) -> Series:
        return Series(name, colour, [row.get(figure, nothing) for row in found])

    return [
        Chart("Cost", times, [series("USD", "first", "priced_cost")], "USD", digits=2),
        Chart(
            "Calls",
            times,
            [
                series("made", "first", "model_calls"),
                series("spared by a cache", "outcome-closest", "cached_calls"),
            ],
        ),
        Chart(
            "Tokens",
            times,
            [
                series("in", "first", "input_tokens"),
                series("out", "outcome-asked", "output_tokens"),
            ],
        ),
        Chart(
            "Seconds to a reply",
            times,
            [
                series("half within", "first", "p50_seconds", None),
                series("95 % within", "second", "p95_seconds", None),
            ],
            "s",
            digits=1,
            lines=True,
        ),
    ]


def usage_file(usage: dict[str, Any]) -> HttpResponse:
    """Return usage as CSV, with a header."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"usage-by-{usage['by']}-{usage['from']}-{usage['to']}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.DictWriter(response, fieldnames=list(usage["total"]))
    writer.writeheader()
    # A spreadsheet takes what begins so for a formula, and who asks is called as clients say.
    writer.writerows(
        row | {"name": f"'{row['name']}" if row["name"].startswith(tuple("=+-@")) else row["name"]}
        for row in usage["rows"]
    )
    return response


OUTCOME_COLOURS = {
    outcome.value: "success" if outcome is Outcome.OK else "danger" for outcome in Outcome
} | {Outcome.SENT.value: "info"}


@admin.register(ModelCall)
class ModelCallAdmin(RecordAdmin):
    """Model calls: what was asked, what was replied, how long it took and what it cost."""

    record_template = "agents/call.html"
    list_before_template = "agents/calls.html"  # type: ignore[assignment]  # Unfold: None
    list_display = ("created", "role", "prompt", "model", "state", "tokens", "price", "took")
    list_display_links = ("created", "prompt")
    list_filter = ("outcome", "role", "model", "prompt", "created")
    search_fields = ("subject", "prompt", "model", "error")
    search_help_text = "Id of a turn, name of a prompt or model, or words of an error"
    date_hierarchy = "created"

    def get_urls(self) -> list[URLPattern]:
        """Add the page of usage."""
        page = self.admin_site.admin_view(self.usage_view)
        return [path("usage/", page, name="agents_modelcall_usage"), *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelCall]:
        """Calls without what was said, which only their own pages show."""
        calls: QuerySet[ModelCall] = super().get_queryset(request)
        return calls.defer("request", "reply", "tool_calls")

    def record(self, row: Any) -> dict[str, Any]:
        """Return the call with its messages apart from the rest of the request."""
        request = {name: value for name, value in row.request.items() if name != "messages"}
        return {
            "row": row,
            "unheard": row.outcome in UNHEARD,
            "messages": row.request.get("messages", []),
            "request": pretty(request),
            "attempts": row.attempts,
            "tool_calls": pretty(row.tool_calls) if row.tool_calls else "",
        }

    def usage_view(self, request: HttpRequest) -> HttpResponse:
        """Show calls, tokens, cost and time between two days."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = request.GET.dict()
        is_file = asked.pop("format", "") == "csv"
        query = UsageQuery(data=asked)
        context = self.admin_site.each_context(request) | {
            "title": "Usage of language models",
            "parts": list(PARTS),
            "first": request.GET.get("from", ""),
            "last": request.GET.get("to", ""),
        }
        if query.is_valid():
            usage = figures(**query.validated_data)
            if is_file:
                return usage_file(usage)
            form = {"first": f"{usage['from']}", "last": f"{usage['to']}"}
            context |= {"figures": usage, "bars": bars(usage["rows"]), "most": MOST_ROWS} | form
            days = (usage["to"] - usage["from"]).days
            if usage["by"] == "day" and usage["rows"] and days < MOST_DAYS:
                context["charts"] = day_charts(usage)
        else:
            context["errors"] = [error for errors in query.errors.values() for error in errors]
        return TemplateResponse(request, "agents/usage.html", context)

    @display(description="Outcome", ordering="outcome", label=OUTCOME_COLOURS)
    def state(self, call: ModelCall) -> tuple[str, str]:
        """What it came to."""
        return call.outcome, call.get_outcome_display()

    @display(description="Tokens")
    def tokens(self, call: ModelCall) -> str:
        """Tokens in and out, as far as they were counted."""
        if call.cached_from_id:
            return "cached"
        counts = (call.input_tokens, call.output_tokens)
        return " → ".join("?" if count is None else f"{count:,}" for count in counts)

    @display(description="USD", ordering="cost")
    def price(self, call: ModelCall) -> str:
        """What it cost, or can have cost at most; empty when that is not known."""
        most = "≤\N{NO-BREAK SPACE}" if call.outcome in UNHEARD else ""
        return "" if call.cost is None else f"{most}{call.cost:.6f}"

    @display(description="Took", ordering="seconds")
    def took(self, call: ModelCall) -> str:
        """Milliseconds until the reply was there."""
        return f"{call.seconds * 1000:,.0f}\N{NO-BREAK SPACE}ms"


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


class PriceForm(forms.ModelForm):
    """A model that Docent could ask, and prices that are none below zero."""

    class Meta:
        model = Price
        fields = ("model", "input_per_million", "output_per_million")

    def clean_model(self) -> str:
        """Return the name as calls are stored under it: model@provider."""
        name, provider = parse_model_name(self.cleaned_data["model"])
        if not name or provider not in settings.PROVIDERS:
            raise forms.ValidationError(
                f"Write model@provider, with one of these providers: {provider_names()}."
            )
        return f"{name}@{provider}"

    def clean(self) -> dict[str, Any]:
        """Refuse prices below zero."""
        return _not_negative(self, super().clean(), "input_per_million", "output_per_million")


class BudgetForm(forms.ModelForm):
    """A user whose keys may spend this much in a day."""

    class Meta:
        model = Budget
        fields = ("owner", "usd_per_day")

    def clean(self) -> dict[str, Any]:
        """Refuse a budget below zero."""
        return _not_negative(self, super().clean(), "usd_per_day")


def _not_negative(
    form: forms.ModelForm, cleaned: dict[str, Any] | None, *names: str
) -> dict[str, Any]:
    values = cleaned or {}
    for name in names:
        if values.get(name) is not None and values[name] < 0:
            form.add_error(name, "This must be 0 or more.")
    return values


@admin.register(Price)
class PriceAdmin(ModelAdmin):
    """Prices that hold here, in place of the published ones; calls made before keep theirs."""

    form = PriceForm
    list_display = ("model", "input_per_million", "output_per_million")
    search_fields = ("model",)


@admin.register(Budget)
class BudgetAdmin(ModelAdmin):
    """Budgets of single users, for all their keys; everybody else has DAILY_BUDGET_PER_KEY."""

    form = BudgetForm
    list_display = ("owner", "usd_per_day")
    list_select_related = ("owner",)
    search_fields = ("owner__username",)


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
