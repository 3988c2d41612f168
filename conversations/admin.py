"""Admin of the conversations: each as a chat to read; one can be forgotten, none changed."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.text import Truncator
from unfold.admin import ModelAdmin
from unfold.decorators import display

from agents.models import Envelope
from conversations.answers import answer_html, by_marker
from conversations.models import Conversation, Message
from conversations.services import forget
from knowledge.read_only_admin import RecordAdmin

COLOURS: dict[str, str] = {
    Conversation.Status.RUNNING: "info",
    Conversation.Status.AWAITING_USER: "warning",
}


@admin.register(Conversation)
class ConversationAdmin(RecordAdmin):
    """Conversations. To delete one is to forget it, with all its turns."""

    record_template = "conversations/chat.html"
    list_display = ("began", "session", "owner", "user_id", "state", "said", "updated")
    list_display_links = ("began",)
    list_filter = (
        "status",
        ("collections", admin.RelatedOnlyFieldListFilter),
        ("owner", admin.RelatedOnlyFieldListFilter),
        "updated",
    )
    list_select_related = ("owner",)
    search_fields = ("id", "session", "user_id", "owner__username", "messages__text")
    search_help_text = "Session, user, or words that were said"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """Conversations with their first words and how much was said."""
        first = Message.objects.filter(conversation=OuterRef("pk")).order_by("created")
        conversations: QuerySet[Conversation] = super().get_queryset(request)
        return conversations.annotate(
            first_words=Subquery(first.values("text")[:1]), message_count=_messages()
        )

    def record(self, row: Any) -> dict[str, Any]:
        """Return the conversation with its messages, and the turn of each."""
        messages = row.messages.select_related("turn").defer("turn__memory")
        return {"row": row, "said": [_shown(message) for message in messages]}

    @display(description="Began with")
    def began(self, conversation: Any) -> str:
        """The first words."""
        return Truncator(conversation.first_words or conversation.session).chars(80)

    @display(description="Status", ordering="status", label=COLOURS)
    def state(self, conversation: Conversation) -> tuple[str, str]:
        """Whose turn it is."""
        return conversation.status, conversation.get_status_display()

    @display(description="Messages", ordering="message_count")
    def said(self, conversation: Any) -> int:
        """Number of messages."""
        return int(conversation.message_count or 0)

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


def _messages() -> Subquery:
    """Count apart from the main query, where joins of filters would multiply it."""
    messages = Message.objects.filter(conversation=OuterRef("pk")).order_by()
    return Subquery(messages.values("conversation").annotate(n=Count("pk")).values("n"))


def _shown(message: Message) -> dict[str, Any]:
    payload = message.turn.payload if message.turn else {}
    citations = by_marker(payload.get("citations_used") or ())
    return {
        "message": message,
        "text": answer_html(message.text, [citation["marker"] for citation in citations]),
        "route": payload.get("route"),
        "cited": citations,
    }
