"""Sources: the repositories and sitemaps that collections follow, in the admin."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from knowledge.ingestion import schedule
from knowledge.ingestion.jobs import enqueue
from knowledge.models import Source

RUNS_SHOWN = 20
SPANS = {
    "0:05:00": "every 5 minutes",
    "1:00:00": "every hour",
    "6:00:00": "every 6 hours",
    "1 day, 0:00:00": "every day",
    "7 days, 0:00:00": "every week",
}
FIXED = ("collection", "address", "branch", "folder")


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = UnfoldAdminTextareaWidget

    def prepare_value(self, value: Any) -> Any:
        """Return the list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str]:
        """Return the lines that hold something, each once."""
        text = super().clean(value) or ""
        return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


class SourceForm(forms.ModelForm):
    """What is followed, and how often it is read."""

    every = forms.ChoiceField(
        choices=SPANS.items(), initial="1 day, 0:00:00", widget=UnfoldAdminSelectWidget
    )
    patterns = LinesField(
        required=False,
        help_text="Of a repository: names of files such as *.md, one a line. Empty: all files in "
        "formats known here.",
    )

    class Meta:
        model = Source
        fields = ("collection", "address", "branch", "folder", "patterns", "every", "paused")
        help_texts = {
            "address": "Of a sitemap (.xml, .xml.gz), or of a Git repository over https://.",
        }

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        every = str(self.instance.every)
        if every not in SPANS:
            field: Any = self.fields["every"]
            field.choices = [(every, f"every {every}"), *SPANS.items()]
        self.initial["every"] = every

    def clean_every(self) -> timedelta:
        """Return the span that was chosen."""
        chosen = self.cleaned_data["every"]
        spans: list[timedelta] = [self.instance.every, timedelta(minutes=5), timedelta(hours=1)]
        spans += [timedelta(hours=6), timedelta(days=1), timedelta(days=7)]
        return next(span for span in spans if str(span) == chosen)

    def clean(self) -> dict[str, Any]:
        """Refuse what could never be read, with the reason."""
        cleaned: dict[str, Any] = super().clean() or {}
        source = self.instance
        for name in ("address", "branch", "folder", "patterns"):
            setattr(source, name, cleaned.get(name, getattr(source, name)))
        source.folder = source.folder.strip("/")
        is_sitemap = schedule.is_sitemap(source.address)
        source.kind = Source.Kind.SITEMAP if is_sitemap else Source.Kind.GIT
        try:
            schedule.check(source)
        except schedule.InvalidSource as error:
            raise forms.ValidationError(str(error)) from error
        return cleaned


@admin.register(Source)
class SourceAdmin(ModelAdmin):
    """What is followed; each can be read now, paused and followed no more."""

    form = SourceForm
    list_display = ("address", "collection", "kind", "frequency", "latest", "changes")
    list_filter = (("collection", admin.RelatedOnlyFieldListFilter), "kind", "paused")
    list_select_related = ("collection",)
    search_fields = ("address", "branch", "folder")
    actions = ("read_now", "pause", "resume")
    change_form_after_template = "knowledge/source.html"  # type: ignore[assignment]

    class Media:
        css = {"all": ("knowledge/records.css",)}

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """What it is stays: its documents are known by it."""
        return FIXED if obj else ()

    @display(description="Read")
    def frequency(self, source: Source) -> str:
        """How often it is read."""
        said = SPANS.get(str(source.every), f"every {source.every}")
        return f"{said}, paused" if source.paused else said

    @display(description="Latest run")
    def latest(self, source: Source) -> str:
        """When it was read last, and how that ended."""
        job = source.runs.order_by("-created").first()
        return f"{job.created:%Y-%m-%d %H:%M}, {job.status}" if job else "not yet"

    @display(description="New, changed, removed")
    def changes(self, source: Source) -> str:
        """What the latest run changed."""
        job = source.runs.order_by("-created").first()
        said = job.report if job else {}
        return ", ".join(str(said.get(name, 0)) for name in ("new", "changed", "removed"))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show below the form what its runs changed."""
        source = self.get_object(request, object_id)
        runs = source.runs.order_by("-created")[:RUNS_SHOWN] if source else ()
        context = {"runs": runs, "source": source}
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    @admin.action(description="Read now", permissions=["change"])
    def read_now(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        """Have the chosen ones read at once, also what seems unchanged."""
        jobs = [schedule.plan_run(source, is_whole=True) for source in queryset]
        for job in jobs:
            if job is not None:
                enqueue(job)
        begun = sum(job is not None for job in jobs)
        messages.success(request, f"{begun} to be read. How far they are is under Ingests.")

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        """Read the chosen ones only when somebody asks for it."""
        queryset.update(paused=True)

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Source]) -> None:
        """Read the chosen ones on their schedule again."""
        queryset.update(paused=False)
