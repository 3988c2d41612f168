"""Admin of unanswered questions: what is asked, how often, what search finds, what is done."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.text import Truncator
from unfold.decorators import display

from conversations import gaps
from conversations.answers import answer_html, by_marker, clarification, reply, without_sources
from conversations.endings import UNANSWERED, Gap, Kind, missed
from conversations.errors import ConversationError
from knowledge.api.search_api import run_search
from knowledge.errors import KnowledgeError
from knowledge.read_only_admin import RecordAdmin

EXAMPLES, PASSAGES = 30, 5
STATES = {"open": gaps.OPEN, "settled": ~gaps.OPEN}


class State(admin.SimpleListFilter):
    """Whether staff have put it aside; left out: what is open."""

    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return what there is beside the open ones."""
        return [("settled", "Put aside"), ("all", "All")]

    def choices(self, changelist: Any) -> Any:
        """Call the first one what it is."""
        first, *others = super().choices(changelist)
        return [first | {"display": "Open"}, *others]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return those in the chosen state."""
        return queryset if self.value() == "all" else queryset.filter(
            STATES[self.value() or "open"]
        )  # fmt: skip


class Why(admin.SimpleListFilter):
    """How the turns ended."""

    title, parameter_name = "why", "why"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the kinds that count, and thumbs down, which any answer may get."""
        return [*((kind.value, kind.label) for kind in UNANSWERED), ("down", "thumb down")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the gaps with such a turn."""
        if not self.value():
            return queryset
        wanted = [Kind.ANSWERED] if self.value() == "down" else [self.value()]
        return queryset.filter(kinds__overlap=wanted)


class GapAdmin(RecordAdmin):
    """Unanswered questions. Who may change them asks again and puts them aside."""

    record_template = "conversations/gap.html"
    list_before_template: Any = "conversations/gaps.html"
    list_display = ("question", "asked", "last", "spoken", "why", "state")
    list_display_links = ("question",)
    list_filter = (State, Why, "endings__language", "endings__created")
    list_select_related = ("leader", "settled_by")
    search_fields = ("endings__question",)
    search_help_text = "Words of the question"
    actions = ("dismiss",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Gap]:
        """Gaps with what they hold."""
        rows: QuerySet[Gap] = super().get_queryset(request)
        return gaps.with_questions(rows).defer("leader__embedding")

    def get_ordering(self, request: HttpRequest) -> tuple[Any, ...]:
        """The most asked first; `ordering` may name no sums."""
        return (F("count").desc(), F("last_seen").desc())

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Say above the list how many questions are still to be gathered."""
        shown: Any = {"pending": gaps.pending().filter(missed()).count()}
        return super().changelist_view(request, shown | (extra_context or {}))

    def record(self, row: Any) -> dict[str, Any]:
        """Return the gap with what was asked, what search finds now, and what came of asking."""
        endings = row.endings.filter(missed()).select_related("turn").defer("embedding")
        asked = list(endings.prefetch_related("turn__feedback").order_by("-created")[:EXAMPLES])
        return {
            "row": row,
            "asked": asked,
            "collections": (names := gaps.collections_of(row)),
            "found": found_now(str(row), names),
            "tried": trial_context(row.tried) if row.tried else None,
            "is_open": not row.settled_at or row.last_seen > row.settled_at,
        }

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the gap, or do what was asked for."""
        may_act = may_settle(request)
        if request.method == "POST" and may_act:
            return self._act(request, object_id)
        shown = {"may_act": may_act}
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def _act(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row, user = self.get_object(request, object_id), request.user
        if row is None or not isinstance(user, User):
            raise PermissionDenied
        match request.POST.get("action"):
            case "ask":
                try:
                    gaps.ask_again(row, user)
                except ConversationError as refusal:
                    messages.error(request, str(refusal))
            case "dismiss":
                gaps.settle(Gap.objects.filter(pk=row.pk), user, Gap.Settled.DISMISSED)
                messages.success(request, "Dismissed until somebody asks it again.")
            case "answered":
                gaps.settle(Gap.objects.filter(pk=row.pk), user, Gap.Settled.ANSWERED)
                messages.success(request, "Put aside as answered until it goes unanswered again.")
            case "reopen":
                Gap.objects.filter(pk=row.pk).update(
                    settled="", settled_at=None, settled_by=None
                )  # fmt: skip
            case _:
                raise PermissionDenied
        return redirect(request.path)

    @admin.action(description="Dismiss", permissions=["settle"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[Gap]) -> None:
        """Put the chosen ones aside."""
        chosen = Gap.objects.filter(pk__in=[gap.pk for gap in queryset])
        if isinstance(request.user, User):
            count = gaps.settle(chosen, request.user, Gap.Settled.DISMISSED)
            messages.success(request, f"{count} dismissed until somebody asks again.")

    def has_settle_permission(self, request: HttpRequest) -> bool:
        """Whoever may change gaps."""
        return may_settle(request)

    @display(description="Question")
    def question(self, gap: Gap) -> str:
        """What is asked."""
        return Truncator(str(gap)).chars(110)

    @display(description="Asked", ordering="count")
    def asked(self, gap: Any) -> int:
        """How often it went unanswered."""
        return int(gap.count)

    @display(description="Last", ordering="last_seen")
    def last(self, gap: Any) -> Any:
        """When it was asked last."""
        return gap.last_seen

    @display(description="Languages")
    def spoken(self, gap: Any) -> str:
        """In which it was asked."""
        return ", ".join(filter(None, gap.languages))

    @display(description="Why")
    def why(self, gap: Any) -> str:
        """How the turns ended."""
        return ", ".join("thumb down" if kind == Kind.ANSWERED else Kind(kind).label
                         for kind in gap.kinds)  # fmt: skip

    @display(description="State", label={"open": "warning", "": "success"})
    def state(self, gap: Any) -> tuple[str, str]:
        """Whether it waits for staff, or who put it aside."""
        if not gap.settled_at:
            return "open", "open"
        if gap.last_seen > gap.settled_at:
            return "open", "asked again"
        return "", f"{gap.get_settled_display()}, {gap.settled_by or 'somebody who left'}"


def may_settle(request: HttpRequest) -> bool:
    """Whether who asks may put questions aside, and ask them again."""
    return request.user.has_perm("conversations.change_gap")


def found_now(question: str, collections: list[str]) -> dict[str, Any]:
    """Return what search finds for a question now, or why it could not be asked."""
    query = {
        "q": question,
        "collection": collections,
        "language": "",
        "audience": "",
        "explain": False,
        "limit": PASSAGES,
    }
    try:
        return {"result": run_search(query)}
    except KnowledgeError as error:
        return {"error": str(error)}


def trial_context(turn: Any) -> dict[str, Any]:
    """Return what the template of a reply to staff is given."""
    said = reply(turn)
    citations = by_marker(said["citations"])
    text = answer_html(without_sources(said), [citation["marker"] for citation in citations])
    ending = getattr(turn, "ending", None)
    return {
        "turn": turn,
        "text": text,
        "cited": citations,
        "ending": ending,
        "answers": ending is not None and ending.kind == Kind.ANSWERED,
        "asks": clarification(turn),
    }
