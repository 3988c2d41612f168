"""Calls: every question to a language model, and what all of them came to."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from unfold.decorators import display

from agents.admin.charts import chart
from agents.llm.outcomes import Outcome
from agents.models import ModelCall
from agents.serializers import UsageQuery
from agents.usage import PARTS, figures
from knowledge.records import RecordAdmin, pretty

COLOURS = {each.value: "success" if each is Outcome.OK else "danger" for each in Outcome}


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
            "messages": row.request.get("messages", []),
            "request": pretty(request),
            "attempts": row.attempts,
            "tool_calls": pretty(row.tool_calls) if row.tool_calls else "",
        }

    def usage_view(self, request: HttpRequest) -> HttpResponse:
        """Show calls, tokens, cost and time between two days."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        query = UsageQuery(data=request.GET)
        context = self.admin_site.each_context(request) | {
            "title": "Usage of language models",
            "parts": list(PARTS),
            "first": request.GET.get("from", ""),
            "last": request.GET.get("to", ""),
        }
        if query.is_valid():
            found = figures(**query.validated_data)
            days = {"first": f"{found['from']}", "last": f"{found['to']}"}
            context |= {"figures": found, "bars": chart(found["rows"])} | days
        else:
            context["errors"] = [error for said in query.errors.values() for error in said]
        return TemplateResponse(request, "agents/usage.html", context)

    @display(description="Outcome", ordering="outcome", label=COLOURS)
    def state(self, call: ModelCall) -> tuple[str, str]:
        """What it came to."""
        return call.outcome, call.get_outcome_display()

    @display(description="Tokens")
    def tokens(self, call: ModelCall) -> str:
        """Tokens in and out, as far as they were counted."""
        if call.cached_from_id:
            return "cached"
        counted = (call.input_tokens, call.output_tokens)
        return " → ".join("?" if each is None else f"{each:,}" for each in counted)

    @display(description="USD", ordering="cost")
    def price(self, call: ModelCall) -> str:
        """What it cost; empty when that is not known."""
        return "" if call.cost is None else f"{call.cost:.6f}"

    @display(description="Took", ordering="seconds")
    def took(self, call: ModelCall) -> str:
        """Milliseconds until the reply was there."""
        return f"{call.seconds * 1000:,.0f}\N{NO-BREAK SPACE}ms"
