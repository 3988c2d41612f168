"""Admin of the conversations: each as a chat to read; one can be forgotten, none changed."""

import uuid
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import Truncator
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents.models import Envelope
from conversations import gaps, handover
from conversations.assistant_admin import AssistantAdmin
from conversations.conversation_filters import (
    CostFilter,
    FeedbackFilter,
    OutcomeFilter,
    RouteFilter,
    cost,
    with_outcomes,
)  # fmt: skip
from conversations.endings import TRIAL, Kind
from conversations.erasure import forget
from conversations.errors import ConversationError, RefusedHandover
from conversations.feedback import Rating, with_answers
from conversations.gap_admin import GapAdmin, trial_context
from conversations.inbox import CHANGE, MOST_MESSAGES, OPEN, HandoverAdmin, shown, with_turns
from conversations.models import Conversation, Feedback, Gap, Handover, Message
from conversations.services import Filters, with_beginnings
from knowledge.read_only_admin import RecordAdmin

__all__ = ("AssistantAdmin", "ConversationAdmin", "FeedbackAdmin")

# What the search box holds.
BOX = ("q", "collection", "language", "audience", "limit")
COLOURS: dict[str, str] = {
    Conversation.Status.RUNNING: "info",
    Conversation.Status.AWAITING_USER: "warning",
    Conversation.Status.WITH_STAFF: "danger",
}

ENDING_COLOURS: dict[str, str] = {
    **dict.fromkeys((Kind.ANSWERED, Kind.SMALL_TALK), "success"),
    **dict.fromkeys((Kind.CLOSEST, Kind.ASKED_BACK, Kind.FALLBACK, Kind.WITH_STAFF), "warning"),
    **dict.fromkeys((Kind.DECLINED, Kind.FAILED), "danger"),
}

admin.site.register(Handover, HandoverAdmin)
admin.site.register(Gap, GapAdmin)


@admin.register(Conversation)
class ConversationAdmin(RecordAdmin):
    """Conversations. To delete one is to forget it, with all its turns."""

    record_template = "conversations/chat.html"
    list_display = ("asked", "ended", "sure", "turns", "state", "who", "updated")
    list_display_links = ("asked",)
    list_filter = (
        OutcomeFilter,
        RouteFilter,
        FeedbackFilter,
        "status",
        "assistant",
        ("collections", admin.RelatedOnlyFieldListFilter),
        CostFilter,
        "updated",
        ("owner", admin.RelatedOnlyFieldListFilter),
    )
    date_hierarchy = "updated"
    list_select_related = ("owner",)
    search_fields = ("id", "session", "user_id", "owner__username", "messages__text")
    search_help_text = "Words of a question or an answer, session, or user"

    def get_urls(self) -> list[URLPattern]:
        """Add where staff try a question, and look at its reply."""
        guarded = self.admin_site.admin_view
        return [
            path("try/", guarded(self.try_view), name="conversations_conversation_try"),
            path(
                "tried/<uuid:turn>/",
                guarded(self.tried_view),
                name="conversations_conversation_tried",
            ),
            *super().get_urls(),
        ]

    def try_view(self, request: HttpRequest) -> HttpResponse:
        """Ask what stands in the search box, in a conversation of who asks; show both."""
        if request.method != "POST" or not isinstance(request.user, User):
            raise PermissionDenied
        query = QueryDict(mutable=True)
        for name in BOX:
            query.setlist(name, list(filter(None, request.POST.getlist(name))))
        tags = query.getlist("language")
        try:
            filters = Filters(languages=tags, audience=query.get("audience", ""))
            names = query.getlist("collection")
            turn = gaps.trial(query.get("q", ""), request.user, names, filters)
            query["asked"] = str(turn.pk)
        except ConversationError as refusal:
            messages.error(request, str(refusal))
        return redirect(f"{reverse('admin:knowledge_document_search')}?{query.urlencode()}")

    def tried_view(self, request: HttpRequest, turn: uuid.UUID) -> HttpResponse:
        """Show the reply to what staff tried themselves."""
        own = Conversation.objects.filter(owner=request.user.pk, session__startswith=TRIAL)
        row = get_object_or_404(Envelope, pk=turn, conversation_id__in=own.values("pk"))
        context = {"tried": trial_context(row), "refresh": request.path}
        return TemplateResponse(request, "conversations/trial.html", context)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """Conversations with their first words and what came of them."""
        return with_outcomes(with_beginnings(super().get_queryset(request)))

    def record(self, row: Any) -> dict[str, Any]:
        """Return the conversation with its messages, and the turn of each."""
        said = list(with_turns(row.messages.order_by("created"))[: MOST_MESSAGES + 1])
        rows = Conversation.objects.filter(pk=row.pk).annotate(spent=cost())
        return {
            "row": row,
            "said": [shown(message) for message in said[:MOST_MESSAGES]],
            "is_cut": len(said) > MOST_MESSAGES,
            "spent": rows.values_list("spent", flat=True).first(),
        }

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the conversation; let who may answer in it take it over."""
        may_take_over = settings.HANDOVER and request.user.has_perm(CHANGE)
        wants_to = request.POST.get("action") == "take_over"
        if wants_to and may_take_over and isinstance(request.user, User):
            return self._take_over(request, object_id, request.user)
        row = self.get_object(request, object_id)
        shown = {
            "may_take_over": may_take_over,
            "open_handover": Handover.objects.filter(OPEN, conversation=row).first(),
        }
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def _take_over(self, request: HttpRequest, object_id: str, user: User) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        try:
            taken = handover.take_over(row.pk, user)
        except RefusedHandover as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
            return redirect(request.path)
        return redirect(reverse("admin:conversations_handover_change", args=[taken.pk]))

    @display(description="First question")
    def asked(self, conversation: Any) -> str:
        """The first words."""
        return Truncator(conversation.first_words or conversation.session).chars(90)

    @display(description="Last turn", ordering="outcome", label=ENDING_COLOURS)
    def ended(self, conversation: Any) -> tuple[str, str]:
        """How the last turn ended."""
        kind = conversation.outcome
        return (kind, Kind(kind).label) if kind else ("", "under way")

    @display(description="Confidence", ordering="confidence")
    def sure(self, conversation: Any) -> str:
        """How sure the last answer was."""
        sure = conversation.confidence
        return "" if sure is None else f"{sure:.2f}"

    @display(description="Turns", ordering="turn_count")
    def turns(self, conversation: Any) -> int:
        """Number of turns that ended."""
        return int(conversation.turn_count)

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, conversation: Conversation) -> tuple[str, str]:
        """Whose turn it is."""
        return conversation.status, conversation.get_status_display()

    @display(description="Who")
    def who(self, conversation: Conversation) -> str:
        """The user as the client says, and the owner of the key or login."""
        owner = str(conversation.owner) if conversation.owner else ""
        return " · ".join(filter(None, (conversation.user_id, owner))) or "a visitor"

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever may delete conversations."""
        return ModelAdmin.has_delete_permission(self, request, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Forget the conversation."""
        forget(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Conversation]) -> None:
        """Forget each of them."""
        for conversation in queryset:
            forget(conversation)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say how much goes with the conversations."""
        ids = [conversation.pk for conversation in objs]
        counts = {
            "conversations": len(ids),
            "messages": Message.objects.filter(conversation__in=ids).count(),
            "turns": Envelope.objects.filter(conversation_id__in=ids).count(),
        }
        lines = [f"{counts['messages']} messages", f"{counts['turns']} turns with their traces"]
        return lines, counts, set(), []


@admin.register(Feedback)
class FeedbackAdmin(RecordAdmin):
    """Feedback, with the question and the answer it is about."""

    record_template = "conversations/feedback.html"
    list_display = ("updated", "thumbs", "asked", "said", "by")
    list_display_links = ("updated", "asked")
    list_filter = ("rating", ("by", admin.RelatedOnlyFieldListFilter), "updated")
    list_select_related = ("by",)
    search_fields = ("turn__id", "turn__conversation_id", "comment", "turn__memory__text")
    search_help_text = "Id of a turn or a conversation, words of the comment or the question"
    date_hierarchy = "updated"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Feedback]:
        """Feedback with what it is about."""
        return with_answers(super().get_queryset(request))

    @display(
        description="Rating", ordering="rating", label={Rating.UP: "success", Rating.DOWN: "danger"}
    )
    def thumbs(self, feedback: Feedback) -> tuple[str, str]:
        """Up or down."""
        return feedback.rating, feedback.get_rating_display()

    @display(description="Question")
    def asked(self, feedback: Any) -> str:
        """The beginning of the question."""
        return Truncator(feedback.question).chars(80)

    @display(description="Comment")
    def said(self, feedback: Feedback) -> str:
        """The beginning of the comment."""
        return Truncator(feedback.comment).chars(80)
