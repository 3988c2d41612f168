"""Document filters: how the list of documents is narrowed, beside the columns of its table."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import (
    CharField,
    Count,
    DateField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)  # fmt: skip
from django.db.models.functions import Cast, Coalesce, Lower
from django.http import HttpRequest
from django.utils.timezone import now

from knowledge.models import Document, Item, Reliance
from knowledge.parsing import FORMATS

CITED_DAYS, STALE_DAYS = 30, 365
# Documents of which a failed ingest is told, the latest first.
MOST_FAILED = 1000
WEB = "web"
SUFFIX = Func(
    F("origin"),
    Value(r"\.[A-Za-z0-9]{1,8}$"),
    template="substring(%(expressions)s)",
    arg_joiner=" FROM ",
    output_field=CharField(),
)
Choice = tuple[str, Callable[[], Q]]


def citation_count() -> Coalesce:
    """Return how many answers of the last days cited a document."""
    since = now() - timedelta(days=CITED_DAYS)
    rows = Reliance.objects.filter(document=OuterRef("pk"), created__gte=since).order_by()
    counts = rows.values("document").annotate(number=Count("turn", distinct=True))
    return Coalesce(Subquery(counts.values("number")), 0)


def is_cited(days: int | None = None) -> Exists:
    """Return whether any answer cited a document, of the last days or at all."""
    rows = Reliance.objects.filter(document=OuterRef("pk"))
    return Exists(rows.filter(created__gte=now() - timedelta(days=days)) if days else rows)


def is_failed() -> Q:
    """Return the condition of documents whose file could not be read the last time."""
    place = ("ingest__collection_id", "origin")
    latest = Item.objects.order_by(*place, "-pk").distinct(*place).values("pk")
    failed = Item.objects.filter(pk__in=latest, status=Item.Status.SKIPPED).order_by("-pk")
    condition = Q(pk__in=[])
    by_collection: dict[int, list[str]] = {}
    for collection, origin in failed.values_list(*place)[:MOST_FAILED]:
        by_collection.setdefault(collection, []).append(origin)
    for collection, origins in by_collection.items():
        condition |= Q(collection=collection, origin__in=origins)
    return condition


def is_stale() -> Q:
    """Return the condition of documents that neither their author nor an ingest changed lately."""
    day = (now() - timedelta(days=STALE_DAYS)).date()
    said = Coalesce("last_updated", Cast("updated", DateField()))
    return Q(pk__in=Document.objects.annotate(said=said).filter(said__lt=day).values("pk"))


def before(days: int) -> Q:
    """Return the condition of what was taken in or changed longer ago."""
    return Q(updated__lt=now() - timedelta(days=days))


class ChoiceFilter(admin.SimpleListFilter):
    """A filter whose choices are conditions."""

    CHOICES: dict[str, Choice] = {}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the choices."""
        return [(name, title) for name, (title, _) in self.CHOICES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return what meets the chosen condition."""
        chosen = self.CHOICES.get(self.value() or "")
        return queryset.filter(chosen[1]()) if chosen else queryset


class StatusFilter(ChoiceFilter):
    """What there is to do about a document."""

    title, parameter_name = "status", "status"
    CHOICES = {
        "failed": ("last ingest failed", is_failed),
        "stale": (f"unchanged for {STALE_DAYS} days", is_stale),
        "edited": ("edited by staff", lambda: ~Q(edits={})),
        "unnamed": ("without a description", lambda: Q(description="")),
    }


class AgeFilter(ChoiceFilter):
    """When a document was taken in or changed last."""

    title, parameter_name = "taken in", "taken"
    CHOICES = {
        "day": ("today and yesterday", lambda: ~before(2)),
        "week": ("in the last 7 days", lambda: ~before(7)),
        "month": ("in the last 30 days", lambda: ~before(30)),
        "quarter": ("more than 90 days ago", lambda: before(90)),
        "year": ("more than a year ago", lambda: before(365)),
    }


class CitedFilter(ChoiceFilter):
    """Whether answers rely on a document."""

    title, parameter_name = "cited", "cited"
    CHOICES = {
        "lately": (f"in the last {CITED_DAYS} days", lambda: Q(is_cited(CITED_DAYS))),
        "before": (f"not in the last {CITED_DAYS} days",
                   lambda: Q(is_cited()) & ~Q(is_cited(CITED_DAYS))),
        "never": ("never", lambda: ~Q(is_cited())),
    }  # fmt: skip


class FormatFilter(admin.SimpleListFilter):
    """What a document was read from: the ends of the names of files, and web pages."""

    title, parameter_name = "format", "format"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the formats there are."""
        suffixes = Document.objects.order_by().values_list(Lower(SUFFIX), flat=True).distinct()
        known = sorted({suffix for suffix in suffixes if suffix in FORMATS})
        return [*((suffix, suffix) for suffix in known), (WEB, "web page")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return those of the chosen format."""
        if not self.value():
            return queryset
        if self.value() == WEB:
            return queryset.filter(
                Q(origin__startswith="http://") | Q(origin__startswith="https://")
            )
        rows: QuerySet[Any] = queryset.alias(suffix=Lower(SUFFIX))
        return rows.filter(suffix=self.value())
