"""Usage admin: what language models were asked, what it cost, and what it may cost."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents.api import UsageQuery
from agents.llm.outcomes import UNHEARD, Outcome
from agents.models import Budget, ModelCall, Price
from agents.trace.charts import Chart, Series
from agents.trace.usage import MOST_ROWS, PARTS, figures
from knowledge.providers import parse_model_name, provider_names
from knowledge.read_only_admin import RecordAdmin, pretty

MOST_DAYS = 400  # in a chart


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
