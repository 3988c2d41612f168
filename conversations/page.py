"""Chat page: lets a browser hold conversations, and shows each with where its answers come from."""

import json
import re
import secrets
import uuid
from collections.abc import Sequence
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
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from agents import envelopes
from agents.attributes import Persona
from agents.models import Envelope
from agents.names import Status
from agents.trace import correlation
from conversations.answers import by_marker
from conversations.erasure import forget
from conversations.errors import (
    Busy,
    ConversationError,
    ForeignCollection,
    Forgotten,
    NobodyListens,
    NothingToRead,
    OtherAssistant,
    OtherDocuments,
    RefusedRetake,
    StillTakenIn,
    TooManyTurns,
    TurnInProgress,
    UnknownAssistant,
    UnknownMessage,
)
from conversations.example_questions import example_questions
from conversations.feedback import LONGEST_COMMENT, Rating, rate
from conversations.grants import UNBOUND, collections_within
from conversations.interface import (
    NO_REDIS,
    NOT_HERE,
    in_own_language,
    languages,
    refusal,
    script_words,
)
from conversations.limits import visitor
from conversations.models import Assistant, Conversation, Message
from conversations.quotation import quotation
from conversations.services import Asker, ask, wait, with_beginnings
from conversations.transcript import Transcript, transcript
from conversations.widget import asker_in_frame, site_grant
from knowledge.errors import KnowledgeError
from knowledge.postgres_text import storable

REFUSED: dict[type[Exception], HTTPStatus] = {
    NobodyListens: HTTPStatus.SERVICE_UNAVAILABLE,
    StillTakenIn: HTTPStatus.SERVICE_UNAVAILABLE,
    TurnInProgress: HTTPStatus.CONFLICT,
    TooManyTurns: HTTPStatus.TOO_MANY_REQUESTS,
    Busy: HTTPStatus.TOO_MANY_REQUESTS,
    UnknownAssistant: HTTPStatus.NOT_FOUND,
    UnknownMessage: HTTPStatus.NOT_FOUND,
    ForeignCollection: HTTPStatus.NOT_FOUND,
    OtherAssistant: HTTPStatus.CONFLICT,
    OtherDocuments: HTTPStatus.CONFLICT,
    RefusedRetake: HTTPStatus.CONFLICT,
    NothingToRead: HTTPStatus.SERVICE_UNAVAILABLE,
    Forgotten: HTTPStatus.NOT_FOUND,
}
# After so many seconds it makes sense to send the message again, which the script does.
RETRY_SECONDS = 5
# Names of the conversations of a browser, in its session; what follows PREFIX is in the address.
SESSION_KEY = "conversations"
PREFIX = "web-"
NAME = re.compile(r"[\w-]{8,60}", re.ASCII)
MOST_CONVERSATIONS = 50


@dataclass(frozen=True)
class VisibleTurn:
    """A turn that this browser may see, and the conversation it is in."""

    conversation: Conversation
    envelope: Envelope


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@in_own_language
def start(request: HttpRequest) -> HttpResponse:
    """Show where a conversation begins; take a message of it, or of one that goes on."""
    if is_closed(request):
        status = HTTPStatus.FORBIDDEN if request.method == "POST" else HTTPStatus.OK
        return _closed(request, status)
    if request.method == "POST":
        return _ask(request)
    if request.GET.get("assistant") and not _assistant(request, None):
        error = UnknownAssistant()
        return _show(request, error=refusal(error, staff=False), status=REFUSED[UnknownAssistant])
    return _show(request)


@require_safe
@never_cache
@in_own_language
def conversation(request: HttpRequest, name: str) -> HttpResponse:
    """Show a conversation of this browser, at the address it has from its first message on."""
    if is_closed(request):
        return _closed(request, HTTPStatus.FORBIDDEN)
    found = _named(request, name)
    if found is None:
        return _show(request, error=gettext(NOT_HERE), status=HTTPStatus.NOT_FOUND)
    correlation.note(conversation=found.pk)
    return _show(request, found)


def _ask(request: HttpRequest) -> HttpResponse:
    """Ask what was sent, in the conversation it names or in a new one of that name."""
    text, name = request.POST.get("text", ""), request.POST.get("conversation", "")
    name = name if NAME.fullmatch(name) else new_name().removeprefix(PREFIX)
    # PostgreSQL can't even compare a name that it can't store.
    collection = storable(request.POST.get("collection", ""))
    going_on, replaces = None, _identity(request.POST.get("replaces", ""))
    try:
        going_on = _begun(request, name)
        if replaces and not text:
            text = visible_turn(request, str(replaces)).envelope.memory["text"]
        envelope = ask(
            text,
            _asker(request, going_on, PREFIX + name),
            session=PREFIX + name,
            assistant=request.POST.get("assistant", ""),
            collections=[collection] if collection else (),
            idempotency_key=request.POST.get("key", ""),
            replaces=replaces,
        )
    except Http404:
        return _refuse(request, None, gettext(NOT_HERE), HTTPStatus.NOT_FOUND)
    except (ConversationError, KnowledgeError) as error:
        status = REFUSED.get(type(error), HTTPStatus.BAD_REQUEST)
        told = refusal(error, staff=_is_staff(request))
        again = getattr(error, "retry_seconds", 0)
        return _refuse(request, going_on, told, status, again=again)
    except redis.RedisError:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return _refuse(request, going_on, gettext(NO_REDIS), status, again=RETRY_SECONDS)
    remember(request, PREFIX + name)
    page = reverse("talk", args=[name])
    if _by_script(request):
        taken = {"page": page, "turn": str(envelope.pk), "status": envelope.status}
        return JsonResponse(taken, status=HTTPStatus.ACCEPTED)
    try:
        wait(envelope)
    except Forgotten as error:
        return _show(request, error=refusal(error, staff=False), status=HTTPStatus.NOT_FOUND)
    # Again: the middleware stores the session once more, and another tab may have added to it.
    remember(request, PREFIX + name)
    return redirect(page, permanent=False)


def _begun(request: HttpRequest, name: str) -> Conversation | None:
    """Return the conversation a message goes on with; None: it begins one.

    A browser that never heard that its first message was taken sends it again, with the key that
    nobody else knows. Raises Http404 for a conversation of somebody else.
    """
    if found := _named(request, name):
        return found
    foreign = Conversation.objects.filter(session=PREFIX + name)
    if key := request.POST.get("key"):
        text = request.POST.get("text", "").strip()
        sent = Message.objects.filter(conversation__in=foreign, idempotency_key=key, text=text)
        if message := sent.select_related("conversation__owner").first():
            return message.conversation
    if foreign.exists():
        raise Http404
    return None


def _asker(request: HttpRequest, going_on: Conversation | None, name: str) -> Asker:
    """Return who asks: whoever began it, else who is logged in, else someone of this conversation.

    Without a login nobody is served from the content of somebody else.
    """
    if framed := asker_in_frame(request, going_on.user_id if going_on else name):
        return framed
    if going_on:
        owner = going_on.owner
        return Asker(owner, going_on.user_id, key="" if owner else visitor(request))
    if isinstance(request.user, User):
        return Asker(request.user)
    return Asker(None, name, key=visitor(request))


def _by_script(request: HttpRequest) -> bool:
    """Whether the page's own script asks; it follows the turn instead of waiting for its end."""
    return request.headers.get("Accept") == "application/json"


def _refuse(
    request: HttpRequest,
    going_on: Conversation | None,
    error: str,
    status: HTTPStatus,
    *,
    again: int = 0,
) -> HttpResponse:
    """Say why the message was not taken; what was written stays in its field."""
    if _by_script(request):
        response: HttpResponse = JsonResponse({"error": error}, status=status)
    else:
        response = _show(request, going_on, error=error, status=status)
    if again:
        response["Retry-After"] = str(again)
    return response


def _show(
    request: HttpRequest,
    found: Conversation | None = None,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    error: str = "",
) -> HttpResponse:
    assistant = _assistant(request, found)
    said = Transcript([])
    if found:
        reader = request.user if isinstance(request.user, User) else None
        said = transcript(found, reader, before=_identity(request.GET.get("before", "")))
    name = found.session.removeprefix(PREFIX) if found else new_name().removeprefix(PREFIX)
    context = _about(assistant) | {
        "conversation": found,
        "name": name,
        "said": said,
        "with_staff": bool(found and found.status == Conversation.Status.WITH_STAFF),
        "handover": found.handovers.order_by("requested").last() if found else None,
        "watched": bool(found and (settings.HANDOVER or found.billing_case_id)),
        "conversation_title": said.title,
        "bound": [each.name for each in found.collections.all()] if found else [],
        "mine": _conversations(request),
        "is_staff": _is_staff(request),
        "error": error,
        "text": request.POST.get("text", ""),
        "longest": settings.MAX_QUESTION_LENGTH,
        "longest_comment": LONGEST_COMMENT,
        **({} if found else _beginning(request, assistant)),
    }
    return render(request, "conversations/talk.html", context, status=status)


def _beginning(request: HttpRequest, assistant: Assistant | None) -> dict[str, Any]:
    """Return what a page shows on which nothing was said yet."""
    grant = site_grant(request)
    reached = collections_within(assistant, grant.bounds if grant else UNBOUND)
    sized = reached.annotate(size=Count("documents"))
    collections = list(sized.filter(size__gt=0).order_by("name"))
    open_ones = [each for each in collections if assistant or not each.only_by_name]
    return {
        "assistants": Assistant.objects.none() if grant else Assistant.objects.all(),
        "collections": collections,
        "is_empty": not collections,
        "only_collection": bool(assistant or grant) and len(collections) == 1,
        "chosen": request.POST.get("collection", ""),
        "examples": example_questions(open_ones),
    }


def _closed(request: HttpRequest, status: HTTPStatus) -> HttpResponse:
    return render(request, "conversations/closed.html", _about(None), status=status)


def _about(assistant: Assistant | None) -> dict[str, Any]:
    persona = assistant.persona() if assistant else Persona()
    return {
        "assistant": assistant,
        "domain_name": persona.domain_name,
        "domain_scope": persona.domain_scope,
        "languages": languages(),
        "words": json.dumps(script_words(), ensure_ascii=False),
    }


def _assistant(request: HttpRequest, found: Conversation | None) -> Assistant | None:
    """Return the assistant of the conversation, or who is chosen for a new one; None: nobody."""
    grant = site_grant(request)
    if grant and not found:
        return grant.assistant
    said = request.POST.get("assistant") or request.GET.get("assistant", "")
    name = found.assistant if found else storable(said)
    return Assistant.objects.filter(name=name).first() if name else None


@require_POST
@never_cache
@in_own_language
def stop(request: HttpRequest, turn_id: uuid.UUID) -> HttpResponse:
    """End a turn whose answer nobody waits for any more; one that has ended stays as it is."""
    visible = visible_turn(request, str(turn_id))
    envelopes.cancel(visible.envelope.pk)
    return _done(request, visible.conversation)


@require_POST
@never_cache
@in_own_language
def rate_turn(request: HttpRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Take thumbs up or down for an answer, and why; the latest word holds."""
    visible = visible_turn(request, str(turn_id))
    rating = request.POST.get("rating", "")
    comment = storable(request.POST.get(f"comment-{turn_id}", ""))[:LONGEST_COMMENT].strip()
    if rating not in Rating.values:
        return JsonResponse({"error": "Say up or down."}, status=HTTPStatus.BAD_REQUEST)
    by = request.user if isinstance(request.user, User) else None
    try:
        rate(visible.envelope, by, rating, comment)
    except ConversationError as error:
        told = refusal(error, staff=False)
        return _refuse(request, visible.conversation, told, REFUSED[type(error)])
    return _done(request, visible.conversation)


@require_POST
@never_cache
@in_own_language
def forget_talk(request: HttpRequest, name: str) -> HttpResponse:
    """Forget a conversation of this browser with all that belongs to it."""
    found = _named(request, name)
    if found is None or is_closed(request):
        raise Http404
    forget(found)
    _store(request, [each for each in _names(request) if each != found.session])
    if _by_script(request):
        return JsonResponse({"page": reverse("start")})
    return redirect("start", permanent=False)


def _done(request: HttpRequest, found: Conversation) -> HttpResponse:
    page = reverse("talk", args=[found.session.removeprefix(PREFIX)])
    return JsonResponse({"page": page}) if _by_script(request) else redirect(page, permanent=False)


@require_safe
@never_cache
@in_own_language
def cited(request: HttpRequest, turn_id: uuid.UUID, marker: str) -> HttpResponse:
    """Show the passage that an answer cites, in its document, at the version that was cited."""
    visible = visible_turn(request, str(turn_id))
    turn = visible.envelope
    citations = turn.payload.get("citations_used") or [] if turn.status == Status.COMPLETED else []
    found = next((each for each in by_marker(citations) if each["marker"] == marker), None)
    if found is None:
        raise Http404
    context = _about(None) | {
        "shown": quotation(turn, found),
        "name": visible.conversation.session.removeprefix(PREFIX),
        "is_staff": _is_staff(request),
    }
    return render(request, "conversations/passage.html", context)


def is_closed(request: HttpRequest) -> bool:
    """Return whether the chat page is closed to who looks at it."""
    is_let_in = _is_staff(request) or site_grant(request)
    return settings.START_PAGE == "staff" and not is_let_in


def _is_staff(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_staff


def new_name() -> str:
    """Return a name for a conversation that nobody can guess."""
    return f"{PREFIX}{secrets.token_urlsafe(24)}"


def remember(request: HttpRequest, name: str) -> None:
    """Let this browser see the conversation from now on, even if it goes away before the answer."""
    _store(request, [*(other for other in _names(request) if other != name), name])


def _names(request: HttpRequest) -> list[str]:
    """Return the names as stored now, not as loaded: another tab may have begun a conversation."""
    names: list[str] = SessionStore(request.session.session_key).get(SESSION_KEY, [])
    return names


def _store(request: HttpRequest, names: Sequence[str]) -> None:
    request.session[SESSION_KEY] = list(names[-MOST_CONVERSATIONS:])
    request.session.save()


def _conversations(request: HttpRequest) -> list[Conversation]:
    """Return the conversations of this browser in which something was said, the newest first."""
    theirs = with_beginnings(Conversation.objects.filter(session__in=_theirs(request)))
    rows: list[Any] = list(theirs.order_by("-updated", "pk"))
    for row in rows:
        row.address_name = row.session.removeprefix(PREFIX)
    return [row for row in rows if row.message_count]


def _theirs(request: HttpRequest) -> list[str]:
    names: list[str] = request.session.get(SESSION_KEY, [])
    return names


def _named(request: HttpRequest, name: str) -> Conversation | None:
    theirs = Conversation.objects.filter(session__in=_theirs(request)).select_related("owner")
    return theirs.filter(session=PREFIX + name).first()


def visible_conversation(request: HttpRequest, conversation_id: str) -> Conversation:
    """Return the conversation of this id if this browser's; else Http404."""
    identity = _identity(conversation_id)
    rows = Conversation.objects.select_related("owner").filter(session__in=_theirs(request))
    if identity and (found := rows.filter(pk=identity).first()):
        return found
    raise Http404


def visible_turn(request: HttpRequest, turn: str) -> VisibleTurn:
    """Return the turn of this id if this browser's; Http404 for one that isn't or doesn't exist."""
    identity = _identity(turn)
    envelope = Envelope.objects.filter(pk=identity).first() if identity else None
    if envelope is None or is_closed(request):
        raise Http404
    found = visible_conversation(request, str(envelope.conversation_id))
    correlation.note(turn=envelope.pk, conversation=found.pk)
    return VisibleTurn(found, envelope)


def _identity(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
