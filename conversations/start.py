"""Start page: lets a browser ask, and shows each answer with where it comes from."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agents.names import Status
from agents.timeline import timeline
from conversations import browser
from conversations.citations import by_marker, explained, without_list
from conversations.errors import ConversationError, Forgotten, NobodyListens, TurnInProgress
from conversations.models import Message
from conversations.rendering import answer
from conversations.reply import reply
from conversations.services import Asker, ask, wait
from knowledge.errors import KnowledgeError
from knowledge.models import Collection

POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
REFUSED: dict[type[Exception], HTTPStatus] = {
    NobodyListens: HTTPStatus.SERVICE_UNAVAILABLE,
    TurnInProgress: HTTPStatus.CONFLICT,
}
ENDED: dict[str, HTTPStatus] = {
    Status.FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
    Status.EXPIRED: HTTPStatus.GATEWAY_TIMEOUT,
}
NOT_HERE = "There is no such question in this browser. It may have been asked in another one."
NO_REDIS = "Redis does not answer, so no question can be taken now. Try again in a moment."

View = Callable[[HttpRequest], HttpResponse]


def _guarded(view: View) -> View:
    """Forbid the page every script and style that isn't a file of ours."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        response = view(request)
        response["Content-Security-Policy"] = POLICY
        return response

    return guarded


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@_guarded
def page(request: HttpRequest) -> HttpResponse:
    """Show the form, or the turn of `?turn=`; take a question and show its answer."""
    if settings.START_PAGE == "staff" and not (request.user.is_active and request.user.is_staff):
        plain = request.method != "POST" and "turn" not in request.GET
        status = HTTPStatus.OK if plain else HTTPStatus.FORBIDDEN
        return render(request, "conversations/closed.html", _about(), status=status)
    if request.method == "POST":
        return _take(request)
    if "turn" not in request.GET:
        return _show(request)
    try:
        shown = browser.talk(request, request.GET["turn"])
    except Http404:
        return _show(request, error=NOT_HERE, status=HTTPStatus.NOT_FOUND)
    return _show(request, shown, status=ENDED.get(shown.envelope.status, HTTPStatus.OK))


def _take(request: HttpRequest) -> HttpResponse:
    """Ask what was sent, in the conversation of the turn it replies to or in a new one."""
    text, turn = request.POST.get("text", ""), request.POST.get("turn", "")
    # PostgreSQL can't even compare a name that holds a null character.
    collection = request.POST.get("collection", "").replace("\0", "")
    before = None
    try:
        before = browser.talk(request, turn) if turn else None
        name = before.conversation.session if before else browser.new_name()
        asker = before.asker if before else _asker(request)
        envelope = ask(text, asker, session=name, collections=[collection] if collection else ())
    except Http404:
        return _show(request, error=NOT_HERE, status=HTTPStatus.NOT_FOUND, text=text)
    except (ConversationError, KnowledgeError) as error:
        status = REFUSED.get(type(error), HTTPStatus.BAD_REQUEST)
        return _show(request, before, error=str(error), status=status, text=text)
    except redis.RedisError:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return _show(request, before, error=NO_REDIS, status=status, text=text)
    browser.keep(request, name)
    try:
        wait(envelope)
    except Forgotten as error:
        return _show(request, error=str(error), status=HTTPStatus.NOT_FOUND, text=text)
    # Again: the middleware stores the session once more, and another tab may have added to it.
    browser.keep(request, name)
    return redirect(f"{reverse('start')}?turn={envelope.pk}", permanent=False)


def _asker(request: HttpRequest) -> Asker:
    return Asker(request.user if isinstance(request.user, User) else None)


def _show(
    request: HttpRequest,
    shown: browser.Talk | None = None,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    error: str = "",
    text: str = "",
) -> HttpResponse:
    collections = Collection.objects.annotate(size=Count("documents")).order_by("name")
    failed = shown and shown.envelope.status in ENDED
    context = _about() | {
        "collections": collections,
        "chosen": request.POST.get("collection", ""),
        "error": error,
        "text": text or (shown.envelope.memory["text"] if shown and failed else ""),
        **(_turn(shown) if shown else {}),
    }
    return render(request, "conversations/start.html", context, status=status)


def _about() -> dict[str, Any]:
    return {"domain_name": settings.DOMAIN_NAME, "domain_scope": settings.DOMAIN_SCOPE}


def _turn(shown: browser.Talk) -> dict[str, Any]:
    """Return what the page shows of a turn."""
    envelope, conversation = shown.envelope, shown.conversation
    asked = list(
        conversation.messages.filter(role=Message.Author.USER)
        .order_by("created")
        .values("turn_id", "text")
    )
    said = reply(envelope)
    cited = by_marker(said["citations"])
    return {
        "turn": envelope,
        "question": envelope.memory.get("text", ""),
        "reply": said,
        "answer": answer(without_list(said), [source["marker"] for source in cited]),
        "cited": cited,
        "mode": explained(said["mode"], quotes=bool(cited)),
        "spans": timeline(envelope, list(envelope.steps.defer("output"))),
        "asked": asked,
        "is_latest": bool(asked) and asked[-1]["turn_id"] == envelope.pk,
        "bound": [collection.name for collection in conversation.collections.all()],
    }
