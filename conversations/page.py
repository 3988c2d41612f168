"""Start page: lets a browser ask, and shows each answer with where it comes from."""

import secrets
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents.attributes import Persona
from agents.models import Envelope
from agents.names import Status
from agents.trace import correlation
from agents.trace.trace import plan_steps, timeline
from conversations.answers import answer_html, by_marker, mode_sentence, reply, without_sources
from conversations.errors import (
    Busy,
    ConversationError,
    ForeignCollection,
    Forgotten,
    NobodyListens,
    NothingToRead,
    OtherAssistant,
    OtherDocuments,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownAssistant,
)
from conversations.grants import collections_of
from conversations.limits import visitor
from conversations.models import Assistant, Conversation, Message
from conversations.services import Asker, ask, wait
from knowledge.errors import KnowledgeError
from knowledge.models import Collection
from knowledge.postgres_text import storable

REFUSED: dict[type[Exception], HTTPStatus] = {
    NobodyListens: HTTPStatus.SERVICE_UNAVAILABLE,
    StillTakenIn: HTTPStatus.SERVICE_UNAVAILABLE,
    TurnInProgress: HTTPStatus.CONFLICT,
    TooManyTurns: HTTPStatus.TOO_MANY_REQUESTS,
    Busy: HTTPStatus.TOO_MANY_REQUESTS,
    UnknownAssistant: HTTPStatus.NOT_FOUND,
    ForeignCollection: HTTPStatus.NOT_FOUND,
    OtherAssistant: HTTPStatus.CONFLICT,
    OtherDocuments: HTTPStatus.CONFLICT,
    NothingToRead: HTTPStatus.SERVICE_UNAVAILABLE,
}
ENDED: dict[str, HTTPStatus] = {
    Status.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
    Status.EXPIRED: HTTPStatus.GATEWAY_TIMEOUT,
}
NOT_HERE = "There is no such question in this browser. It may have been asked in another one."
NO_REDIS = "Redis does not answer, so no question can be taken now. Try again in a moment."
# Names of the conversations of a browser, in its session.
SESSION_KEY = "conversations"
MOST_CONVERSATIONS = 50
# Of a conversation with staff, the latest.
MOST_MESSAGES = 200
ASSISTANT = Message.Author.ASSISTANT


@dataclass(frozen=True)
class VisibleTurn:
    """A turn that this browser may see, and the conversation it is in."""

    conversation: Conversation
    envelope: Envelope

    @property
    def is_with_staff(self) -> bool:
        """Whether to show the conversation with staff in place of the turn."""
        with_staff = Conversation.Status.WITH_STAFF
        return self.conversation.status == with_staff or self.envelope.status == Status.WITH_STAFF

    def asker(self, visitor: str) -> Asker:
        """Who goes on with the conversation: whoever began it."""
        owner = self.conversation.owner
        return Asker(owner, self.conversation.user_id, key="" if owner else visitor)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Show the form, or the turn of `?turn=`; take a question and show its answer."""
    if is_closed(request):
        plain = request.method != "POST" and "turn" not in request.GET
        status = HTTPStatus.OK if plain else HTTPStatus.FORBIDDEN
        return render(request, "conversations/closed.html", _about(None), status=status)
    if request.method == "POST":
        return _ask(request)
    if "turn" not in request.GET:
        if request.GET.get("assistant") and not _assistant(request, None):
            error = UnknownAssistant()
            return _show(request, error=str(error), status=REFUSED[UnknownAssistant])
        return _show(request)
    try:
        visible = visible_turn(request, request.GET["turn"])
    except Http404:
        return _show(request, error=NOT_HERE, status=HTTPStatus.NOT_FOUND)
    return _show(request, visible, status=ENDED.get(visible.envelope.status, HTTPStatus.OK))


def _ask(request: HttpRequest) -> HttpResponse:
    """Ask what was sent, in the conversation of the turn it replies to or in a new one."""
    text, turn = request.POST.get("text", ""), request.POST.get("turn", "")
    # PostgreSQL can't even compare a name that it can't store.
    collection = storable(request.POST.get("collection", ""))
    previous = None
    try:
        previous = visible_turn(request, turn) if turn else None
        name = previous.conversation.session if previous else new_name()
        asker = previous.asker(visitor(request)) if previous else _asker(request, name)
        envelope = ask(
            text,
            asker,
            session=name,
            assistant=request.POST.get("assistant", ""),
            collections=[collection] if collection else (),
        )
    except Http404:
        return _refuse(request, None, NOT_HERE, HTTPStatus.NOT_FOUND, text)
    except (ConversationError, KnowledgeError) as error:
        status = REFUSED.get(type(error), HTTPStatus.BAD_REQUEST)
        response = _refuse(request, previous, str(error), status, text)
        if isinstance(error, TooManyTurns | StillTakenIn | Busy):
            response["Retry-After"] = str(error.retry_seconds)
        return response
    except redis.RedisError:
        return _refuse(request, previous, NO_REDIS, HTTPStatus.SERVICE_UNAVAILABLE, text)
    remember(request, name)
    page = f"{reverse('start')}?turn={envelope.pk}"
    if _by_script(request):
        events = reverse("turn-events", args=[envelope.pk])
        told = {"page": page, "events": events, "status": envelope.status}
        return JsonResponse(told, status=HTTPStatus.ACCEPTED)
    try:
        wait(envelope)
    except Forgotten as error:
        return _show(request, error=str(error), status=HTTPStatus.NOT_FOUND, text=text)
    # Again: the middleware stores the session once more, and another tab may have added to it.
    remember(request, name)
    return redirect(page, permanent=False)


def _by_script(request: HttpRequest) -> bool:
    """Whether the page's own script asks; it follows the turn instead of waiting for its end."""
    return request.headers.get("Accept") == "application/json"


def _refuse(
    request: HttpRequest,
    previous: VisibleTurn | None,
    error: str,
    status: HTTPStatus,
    text: str,
) -> HttpResponse:
    """Say why the question was not taken; what was written stays in its field."""
    if _by_script(request):
        return JsonResponse({"error": error}, status=status)
    return _show(request, previous, error=error, status=status, text=text)


def _asker(request: HttpRequest, name: str) -> Asker:
    """Return who asks: without a login someone of this conversation, and nobody else's content."""
    if isinstance(request.user, User):
        return Asker(request.user)
    return Asker(None, name, key=visitor(request))


def _show(
    request: HttpRequest,
    visible: VisibleTurn | None = None,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    error: str = "",
    text: str = "",
) -> HttpResponse:
    assistant = _assistant(request, visible)
    if visible and visible.is_with_staff:
        with_staff = _about(assistant) | _with_staff(visible) | {"error": error, "text": text}
        return render(request, "conversations/with_staff.html", with_staff, status=status)
    collections = collections_of(assistant) if assistant else Collection.objects.all()
    failed = visible and visible.envelope.status in ENDED
    context = _about(assistant) | {
        "assistants": Assistant.objects.all(),
        "collections": collections.annotate(size=Count("documents")).order_by("name"),
        "only_collection": bool(assistant) and collections.count() == 1,
        "chosen": request.POST.get("collection", ""),
        "error": error,
        "text": text or (visible.envelope.memory["text"] if visible and failed else ""),
        **(_turn(visible) if visible else {}),
    }
    return render(request, "conversations/start.html", context, status=status)


def _assistant(request: HttpRequest, visible: VisibleTurn | None) -> Assistant | None:
    """Return the assistant of the conversation, or who is chosen for a new one; None: nobody."""
    said = request.POST.get("assistant") or request.GET.get("assistant", "")
    name = visible.conversation.assistant if visible else storable(said)
    return Assistant.objects.filter(name=name).first() if name else None


def _about(assistant: Assistant | None) -> dict[str, Any]:
    persona = assistant.persona() if assistant else Persona()
    return {
        "assistant": assistant,
        "domain_name": persona.domain_name,
        "domain_scope": persona.domain_scope,
    }


def _with_staff(visible: VisibleTurn) -> dict[str, Any]:
    """Return what the page shows of a conversation that staff answer in, or did."""
    conversation = visible.conversation
    said = conversation.messages.filter(is_note=False).order_by("-created")
    return {
        "turn": visible.envelope,
        "conversation": conversation,
        "handover": conversation.handovers.order_by("requested").last(),
        "said": [
            (message, answer_html(message.text) if message.role == ASSISTANT else "")
            for message in reversed(said[:MOST_MESSAGES])
        ],
    }


def _turn(visible: VisibleTurn) -> dict[str, Any]:
    """Return what the page shows of a turn."""
    envelope, conversation = visible.envelope, visible.conversation
    questions = list(
        conversation.messages.filter(role=Message.Author.USER)
        .order_by("created")
        .values("turn_id", "text")
    )
    turn_reply = reply(envelope)
    citations = by_marker(turn_reply["citations"])
    return {
        "turn": envelope,
        "question": envelope.memory.get("text", ""),
        "reply": turn_reply,
        "answer": answer_html(
            without_sources(turn_reply), [citation["marker"] for citation in citations]
        ),
        "cited": citations,
        "mode": mode_sentence(
            turn_reply["mode"],
            quotes=bool(citations),
            form=envelope.payload.get("answer_form") or "",
        ),
        "plan": plan_steps(envelope),
        "spans": timeline(envelope, list(envelope.steps.defer("output"))),
        "asked": questions,
        "is_latest": bool(questions) and questions[-1]["turn_id"] == envelope.pk,
        "watched": conversation.pk if settings.HANDOVER else None,
        "bound": [collection.name for collection in conversation.collections.all()],
    }


def is_closed(request: HttpRequest) -> bool:
    """Return whether the start page is closed to who looks at it."""
    return settings.START_PAGE == "staff" and not (request.user.is_active and request.user.is_staff)


def new_name() -> str:
    """Return a name for a conversation. Nobody can guess it: it is what keeps others out."""
    return f"web-{secrets.token_urlsafe(24)}"


def remember(request: HttpRequest, name: str) -> None:
    """Let this browser see the conversation from now on, even if it goes away before the answer."""
    # As stored now, not as loaded: another tab may have begun a conversation meanwhile.
    stored = SessionStore(request.session.session_key).get(SESSION_KEY, [])
    names = [other for other in stored if other != name]
    request.session[SESSION_KEY] = [*names, name][-MOST_CONVERSATIONS:]
    request.session.save()


def visible_conversation(request: HttpRequest, conversation: str) -> Conversation:
    """Return the conversation of this id if this browser's; else Http404."""
    try:
        identity = uuid.UUID(conversation)
    except ValueError as error:
        raise Http404 from error
    theirs = request.session.get(SESSION_KEY, [])
    rows = Conversation.objects.select_related("owner")
    if found := rows.filter(pk=identity, session__in=theirs).first():
        return found
    raise Http404


def visible_turn(request: HttpRequest, turn: str) -> VisibleTurn:
    """Return the turn of this id if this browser's; Http404 for one that isn't or doesn't exist."""
    try:
        envelope = Envelope.objects.get(pk=uuid.UUID(turn))
    except (ValueError, Envelope.DoesNotExist) as error:
        raise Http404 from error
    conversation = visible_conversation(request, str(envelope.conversation_id))
    correlation.note(turn=envelope.pk, conversation=conversation.pk)
    return VisibleTurn(conversation, envelope)
