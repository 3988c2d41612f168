"""Conversation filters: how the list of conversations is narrowed by what came of their turns."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from agents.models import ModelCall
from agents.names import Route
from conversations.endings import Ending, Kind
from conversations.feedback import Feedback
from conversations.models import Conversation

# Below this an answer was doubtful: routing and checks call it weak, too.
DOUBTFUL = 0.5
COSTS = {"some": ("anything", Decimal(0)), "cent": ("more than 1 cent", Decimal("0.01")),
         "dime": ("more than 10 cents", Decimal("0.10"))}  # fmt: skip


def with_outcomes(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Add how the last turn of each ended, how sure its answer was, and how many turns it has."""
    last = Ending.objects.filter(conversation=OuterRef("pk")).order_by("-created")
    answers = last.exclude(confidence=None)
    counts = last.order_by().values("conversation").annotate(number=Count("pk"))
    return conversations.annotate(
        outcome=Subquery(last.values("kind")[:1]),
        confidence=Subquery(answers.values("confidence")[:1]),
        turn_count=Coalesce(Subquery(counts.values("number")), 0),
    )


def cost() -> Subquery:
    """Return what the models that were asked in a conversation cost, in US dollars."""
    calls = ModelCall.objects.filter(envelope__conversation_id=OuterRef("pk")).order_by()
    sums = calls.values("envelope__conversation_id").annotate(total=Sum("cost"))
    return Subquery(sums.values("total"))


def ended(**how: Any) -> Exists:
    """Return whether any turn of a conversation ended so."""
    return Exists(Ending.objects.filter(conversation=OuterRef("pk"), **how))


class OutcomeFilter(admin.SimpleListFilter):
    """How any of the turns ended."""

    title, parameter_name = "outcome of a turn", "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the ways in which turns end, and answers that are doubtful."""
        return [
            *((kind.value, kind.label) for kind in Kind),
            ("doubtful", f"answered, confidence below {DOUBTFUL}"),
            ("missed", "anything unanswered"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the conversations with such a turn."""
        match self.value():
            case None:
                return queryset
            case "doubtful":
                return queryset.filter(ended(confidence__lt=DOUBTFUL))
            case "missed":
                return queryset.filter(ended(is_missed=True))
            case kind:
                return queryset.filter(ended(kind=kind))


class RouteFilter(admin.SimpleListFilter):
    """The route of any of the turns."""

    title, parameter_name = "route", "route"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the routes."""
        return [(route.value, route.value) for route in Route]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the conversations with a turn on it."""
        return queryset.filter(ended(route=self.value())) if self.value() else queryset


class FeedbackFilter(admin.SimpleListFilter):
    """What users said of any of the answers."""

    title, parameter_name = "feedback", "feedback"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return thumbs, and none."""
        return [("up", "thumb up"), ("down", "thumb down"), ("none", "none")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the conversations with such feedback."""
        said = Feedback.objects.filter(turn__conversation_id=OuterRef("pk"))
        match self.value():
            case "none":
                return queryset.filter(~Exists(said))
            case "up" | "down" as rating:
                return queryset.filter(Exists(said.filter(rating=rating)))
        return queryset


class CostFilter(admin.SimpleListFilter):
    """What the models that were asked cost."""

    title, parameter_name = "cost of models", "cost"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the bounds."""
        return [(name, title) for name, (title, _) in COSTS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the conversations that cost more."""
        if self.value() not in COSTS:
            return queryset
        rows: QuerySet[Any] = queryset.alias(spent=cost())
        return rows.filter(spent__gt=COSTS[self.value() or ""][1])
