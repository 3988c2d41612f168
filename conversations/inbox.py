"""Inbox: what staff see of the conversations that are with them, and what they do there."""

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.text import Truncator
from django.utils.timesince import timesince
from unfold.decorators import display

from conversations import handover
from conversations.answers import answer_html, by_marker
from conversations.endings import UNANSWERED
from conversations.errors import ConversationError
from conversations.models import Handover, Message, Notification
from conversations.services import checked
from knowledge.read_only_admin import RecordAdmin

OPEN = Q(**handover.UNENDED)
OPEN_BOXES = ("new", "mine", "waiting")
VIEW, CHANGE = "conversations.view_handover", "conversations.change_handover"
ACTIONS = ("take", "say", "release", "give_back", "close")
# Who waits for us comes first, the longest first.
ORDER = (F("waiting_since").asc(nulls_last=True), "requested")
# Of a long conversation, the latest.
MOST_MESSAGES = 300
# Passages below a reply that is no answer.
FOUND_SHOWN = 3
UNSENT = "unsent"
WAITS_COLOURS = {"us": "danger", "user": "info", "": "success"}


class Box(admin.SimpleListFilter):
    """Where a conversation with staff stands; left out: all that are open."""

    title = "box"
    parameter_name = "box"
    NAMES = {"new": "New", "mine": "Mine", "waiting": "Waiting for us", "closed": "Closed"}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the boxes."""
        return list(self.NAMES.items())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return what is in the chosen one."""
        return queryset.filter(box(self.value(), request.user))


def box(name: str | None, user: Any) -> Q:
    """Return the condition of what is in a box of the inbox."""
    return {
        "new": OPEN & Q(assigned=None),
        "mine": OPEN & Q(assigned=user),
        "waiting": OPEN & Q(waiting_since__isnull=False),
        "closed": ~OPEN,
    }.get(name or "", OPEN)


def waiting_count() -> int:
    """Return how many conversations wait for staff."""
    return Handover.objects.filter(box("waiting", None)).count()


class HandoverAdmin(RecordAdmin):
    """Inbox: conversations with staff. Who may change them answers, who may view them reads."""

    record_template = "conversations/handover.html"
    change_form_template = "conversations/handover_page.html"
    list_before_template: Any = "conversations/boxes.html"
    list_display = ("began", "waits", "unread", "assigned", "why", "requested", "told")
    list_display_links = ("began",)
    list_filter = (Box, "why")
    list_select_related = ("conversation", "assigned")
    search_fields = (
        "conversation__session",
        "conversation__user_id",
        "conversation__messages__text",
    )
    search_help_text = "Session, user, or words that were said"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Handover]:
        """Conversations with staff, with their first words and how many nobody read."""
        first = Message.objects.filter(conversation=OuterRef("conversation")).order_by("created")
        rows: QuerySet[Handover] = super().get_queryset(request)
        return rows.annotate(
            first_words=Subquery(first.values("text")[:1]),
            unread_count=_unread(),
            untold=Exists(_untold(OuterRef("pk"))),
        )

    def get_ordering(self, request: HttpRequest) -> tuple[Any, ...]:
        """By who waits for us; what has ended, the latest first."""
        if request.GET.get(Box.parameter_name) == "closed":
            return (Coalesce("returned", "closed").desc(),)
        return ORDER

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the list below its boxes, each with how much is in it."""
        counts = Handover.objects.filter(OPEN).aggregate(
            **{name: Count("pk", filter=box(name, request.user)) for name in OPEN_BOXES}
        )
        boxes = [(name, title, counts.get(name)) for name, title in Box.NAMES.items()]
        shown = {"boxes": boxes, "chosen": request.GET.get(Box.parameter_name, "")}
        return super().changelist_view(request, shown | (extra_context or {}))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the conversation, or do what was asked for."""
        if request.method == "POST":
            return self._act(request, object_id)
        row = self.get_object(request, object_id)
        may_answer = request.user.has_perm(CHANGE)
        unsent = request.session.get(UNSENT, {})
        shown = {
            "may_answer": may_answer,
            "unsent": unsent.pop(object_id, ""),
        }
        request.session.modified = request.session.modified or bool(shown["unsent"])
        if row is not None and may_answer:
            _read(row, request.user)
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def record(self, row: Any) -> dict[str, Any]:
        """Return the conversation with its messages, and whether sending was not possible."""
        latest = with_turns(row.conversation.messages)
        said = [shown(message) for message in reversed(latest.order_by("-created")[:MOST_MESSAGES])]
        return {
            "row": row,
            "conversation": row.conversation,
            "said": said,
            "last": said[-1]["message"] if said else None,
            "troubles": _untold(row.pk),
        }

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may delete the conversation it goes with."""
        return request.user.has_perm("conversations.delete_conversation")

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Refuse it to all: a conversation would be with staff whom nobody finds."""
        raise PermissionDenied

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """None: what there is to do is done in the conversation."""
        return {}

    def _act(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        user = request.user
        if row is None or not isinstance(user, User) or not user.has_perm(CHANGE):
            raise PermissionDenied
        action, seen = request.POST.get("action", ""), parse_datetime(request.POST.get("seen", ""))
        text, note = request.POST.get("text", ""), request.POST.get("note", "")
        try:
            done = act(action, row.pk, user, text=text, note=note, seen=seen)
        except ConversationError as refusal:
            # What was written is shown again.
            if text.strip():
                request.session[UNSENT] = {object_id: text}
            self.message_user(request, str(refusal), messages.ERROR)
            return redirect(request.path)
        if done:
            self.message_user(request, done, messages.SUCCESS)
            return redirect(reverse("admin:conversations_handover_changelist"))
        return redirect(request.path)

    @display(description="Began with")
    def began(self, row: Any) -> str:
        """The first words, behind a dot while nobody has read the last ones."""
        words = Truncator(row.first_words or row.conversation.session).chars(80)
        return f"● {words}" if row.is_open and (row.unread_count or row.assigned is None) else words

    @display(description="Waits", ordering="waiting_since", label=WAITS_COLOURS)
    def waits(self, row: Handover) -> tuple[str, str]:
        """Who waits for whom, and since when."""
        if not row.is_open:
            return "", "given back" if row.returned else "closed"
        if row.waiting_since:
            return "us", f"for us, {timesince(row.waiting_since, depth=1)}"
        return "user", "for the user"

    @display(description="Staff told", boolean=True)
    def told(self, row: Any) -> bool:
        """Whether no way of telling staff has failed."""
        return not row.untold

    @display(description="Unread", ordering="unread_count")
    def unread(self, row: Any) -> int | str:
        """Number of messages that who is assigned has not read."""
        return row.unread_count or ""


def act(
    action: str, handover_id: int, by: User, *, text: str, note: str, seen: datetime | None
) -> str:
    """Do what a button asks for and return what to say where it ends the matter.

    Raises ConversationError.
    """
    match action:
        case "say":
            handover.say(handover_id, by, checked(text), seen=seen)
        case "take":
            handover.take(handover_id, by)
        case "release":
            handover.release(handover_id)
        case "give_back":
            handover.give_back(handover_id, by, seen=seen, note=note)
            return "The assistant answers again."
        case "close":
            handover.close(handover_id, by, seen=seen)
            return "The conversation is closed."
        case _:
            raise PermissionDenied
    return ""


def with_turns(messages: QuerySet[Message]) -> QuerySet[Message]:
    """Add the turn of each message, how it ended, and what users said of it."""
    rows = messages.select_related("turn__ending", "by").defer("turn__memory")
    return rows.prefetch_related("turn__feedback__by")


def shown(message: Message) -> dict[str, Any]:
    """Return what the template of a message is given, which comes from `with_turns`."""
    payload = message.turn.payload if message.turn else {}
    is_answer = message.role == Message.Author.ASSISTANT
    citations = by_marker(payload.get("citations_used") or ()) if is_answer else []
    markers = [citation["marker"] for citation in citations]
    ending = getattr(message.turn, "ending", None) if is_answer else None
    return {
        "message": message,
        "text": answer_html(message.text, markers) if is_answer else "",
        "route": payload.get("route"),
        "cited": citations,
        "ending": ending,
        "missed": ending is not None and (ending.is_missed or ending.kind in UNANSWERED),
        "stats": payload.get("search_stats") or {},
        "found": (payload.get("search_results") or [])[:FOUND_SHOWN],
        "reason": payload.get("clarification_reason"),
        "feedback": message.turn.feedback.all() if message.turn and is_answer else (),
    }


def _untold(handover_id: Any) -> QuerySet[Notification]:
    """Return the notifications of a handover that could not be sent, or not yet."""
    return Notification.objects.filter(handover=handover_id, sent=None).exclude(error="")


def _unread() -> Subquery:
    """Count what users said that nobody read, apart from the main query."""
    said = Message.objects.filter(
        conversation=OuterRef("conversation"),
        role=Message.Author.USER,
        created__gt=Coalesce(OuterRef("read_until"), OuterRef("requested")),
    ).order_by()
    return Subquery(said.values("conversation").annotate(n=Count("pk")).values("n"))


def _read(row: Any, user: Any) -> None:
    """Note that who is assigned has the latest message before them."""
    last = row.conversation.messages.order_by("created").last()
    if last and row.is_open:
        handover.read(row.pk, user, last.created)
