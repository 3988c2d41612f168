"""Widget: the chat page in a frame on pages of other sites, with a key made for these.

The key is public: what it may do, it may do from pages of its sites alone. Browsers keep cookies
from frames of other sites, so a frame has a token instead, which stands in the address of all that
it asks for; the page's own links get it from Django's prefix of addresses.
"""

import re
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import Resolver404, get_script_prefix, resolve, reverse, set_script_prefix
from django.utils.crypto import salted_hmac
from django.utils.deprecation import MiddlewareMixin
from django.utils.timezone import now
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from knox.models import AuthToken

from conversations import refusals
from conversations.authentication import identity
from conversations.errors import TooManyTurns
from conversations.grants import Grant
from conversations.interface import ELSEWHERE, GONE, REFUSALS, in_own_language
from conversations.lanes import LANE, lane_of
from conversations.limits import MINUTE, spend, visitor
from conversations.refusals import Kind
from conversations.services import Asker

# /widget/KEY/ opens a frame; all that it asks for then is below /widget/KEY/LANGUAGE/TOKEN/.
INNER = re.compile(r"(/widget/([0-9a-f]{15})/([a-z-]{2,10})/([\w:-]{20,200}))(/.*)", re.ASCII)
BROWSERS_OWN = "auto"  # in place of a language
# What a frame may ask for, by the names of the addresses.
SHOWN = frozenset(
    {
        "start",
        "talk",
        "forget-talk",
        "stop-turn",
        "rate-turn",
        "cited",
        "turn-events",
        "conversation-events",
    }
)


class FrameSession(SessionStore):
    """What is kept for a frame, in the row that its token names and none else."""

    # As of any other session: views look into the row by its key, too.
    key_salt = SessionStore().key_salt

    def _get_session_from_db(self) -> Any:
        # Django forgets the key of a row that is not there yet.
        key = self.session_key
        row = super()._get_session_from_db()  # type: ignore[misc]  # django-stubs leave it out
        self._session_key = key
        return row

    def save(self, must_create: bool = False) -> None:
        """Store it, in a new row if there is none yet."""
        super().save(must_create=must_create or not self.exists(self.session_key or ""))


class Widget(MiddlewareMixin):
    """Lets frames have the chat page, each with a session of its own and nobody's login."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Have what a frame asks for answered as if the page stood alone."""
        found = INNER.fullmatch(request.path_info)
        if found is None:
            return None
        prefix, key, language, token, path = found.groups()
        if language != BROWSERS_OWN:
            request.COOKIES[settings.LANGUAGE_COOKIE_NAME] = language
        grant = grant_of(key)
        if grant is None or not is_own(request):
            return _refused(request, ELSEWHERE if grant else GONE)
        if not _is_issued(token, key):
            return redirect(f"{reverse('widget', args=[key])}?new")
        if not _is_shown(path):
            raise Http404
        request.path_info = path
        request._widget = {  # type: ignore[attr-defined]
            "grant": grant,
            "session": request.session,
            "prefix": get_script_prefix(),
        }
        set_script_prefix(f"{prefix}/")
        request.is_framed = True  # type: ignore[attr-defined]  # for templates
        request.session = FrameSession(salted_hmac("widget", token).hexdigest()[:40])
        request.user = AnonymousUser()
        # Who does not know the token cannot have a request sent with it.
        request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
        LANE.set(lane_of(request.method or "", path))
        grant.note_use()
        return _too_much(request, grant) if request.method == "POST" and path == "/" else None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Let the pages of its sites show the frame, and the next request be what it is."""
        if (state := getattr(request, "_widget", None)) is None:
            return response
        # Else the frame's session would become that of whoever is logged in beside it.
        request.session = state["session"]
        set_script_prefix(state["prefix"])
        return _framed(response, state["grant"].sites)


def grant_of(key: str) -> Grant | None:
    """Return what a key for sites may do; None for one that is none, or is over."""
    usable = Q(token__expiry=None) | Q(token__expiry__gt=now())
    rows = Grant.objects.filter(usable, token__token_key=key, token__user__is_active=True)
    return rows.exclude(sites=[]).select_related("token__user", "assistant").first()


def site_grant(request: HttpRequest) -> Grant | None:
    """Return what the key of a frame may do; None for a request that comes from no frame."""
    state = getattr(request, "_widget", None)
    return state["grant"] if state else None


def site_key(request: HttpRequest) -> AuthToken | None:
    """Return the key of a frame, which ends what is open when it is revoked; None as above."""
    grant = site_grant(request)
    return grant.token if grant else None


def asker_in_frame(request: HttpRequest, name: str) -> Asker | None:
    """Return who asks in a frame: someone of this conversation, and nobody else's content.

    None for a request that comes from no frame.
    """
    grant = site_grant(request)
    if grant is None:
        return None
    return Asker(grant.token.user, name, identity(grant.token), grant.bounds)


def is_own(request: HttpRequest) -> bool:
    """Whether it was sent by a page of ours, as far as a browser says from where it comes."""
    source, host = _source(request), request.get_host()
    return source in {"", settings.PUBLIC_URL} or urlsplit(source).netloc == host


def _source(request: HttpRequest) -> str:
    """Return the origin of the page that has sent a request; empty where nothing says it."""
    said = request.headers.get("Origin") or request.headers.get("Referer", "")
    parts = urlsplit(said)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else said


def _is_issued(token: str, key: str) -> bool:
    try:
        _signer(key).unsign(token)
    except signing.BadSignature:
        return False
    return True


def _signer(key: str) -> signing.Signer:
    return signing.Signer(salt=f"widget:{key}")


def _is_shown(path: str) -> bool:
    try:
        return resolve(path).url_name in SHOWN
    except Resolver404:
        return False


def _too_much(request: HttpRequest, grant: Grant) -> HttpResponse | None:
    """Refuse a question beyond what the key allows in a minute."""
    key = identity(grant.token)
    pots = {
        f"site:{key}:{visitor(request)}": grant.questions_of_a_visitor,
        f"site:{key}": grant.questions,
    }
    for pot, most in pots.items():
        if left := spend(pot, most, MINUTE):
            refusals.note(Kind.KEY)
            status = HTTPStatus.TOO_MANY_REQUESTS
            told = _refused(request, REFUSALS[TooManyTurns], status)
            told["Retry-After"] = str(left)
            return told
    return None


@require_safe
@never_cache
@in_own_language
def frame(request: HttpRequest, key: str) -> HttpResponse:
    """Open a frame: its script goes on with the token it kept, or with the one it gets here."""
    grant = grant_of(key)
    if grant is None:
        return _refused(request, GONE)
    source, dest = _source(request), request.headers.get("Sec-Fetch-Dest", "")
    # Who keeps a browser from saying which page it is cannot keep it from saying that it is in a
    # frame; in which ones it may be is then for the browser to see to.
    is_sites = source in grant.sites or is_own(request) if source else dest == "iframe"
    if not is_sites or dest not in {"", "iframe"}:
        return _refused(request, ELSEWHERE)
    said = request.GET.get("language", "").lower()
    languages = dict(settings.LANGUAGES)
    context = {
        "key": key,
        "language": said if said in languages else BROWSERS_OWN,
        "token": _signer(key).sign(secrets.token_urlsafe(24)),
        "is_new": "new" in request.GET,
    }
    return _framed(render(request, "conversations/frame.html", context), grant.sites)


@in_own_language
def _refused(
    request: HttpRequest, reason: str, status: HTTPStatus = HTTPStatus.FORBIDDEN
) -> HttpResponse:
    """Say so, wherever it is shown: there is nothing else on the page."""
    told = gettext(reason)
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"error": told}, status=status)
    page = render(request, "conversations/no_frame.html", {"reason": told}, status=status)
    return _framed(page, ["*"])


def _framed(response: HttpResponse, sites: Sequence[str]) -> HttpResponse:
    response.frame_ancestors = sites  # type: ignore[attr-defined]  # for assistant.policy
    # The older header knows no sites.
    response.xframe_options_exempt = True
    return response


def line_to_paste(grant: Grant) -> str:
    """Return the line of HTML that brings the chat to a page."""
    address = f"{settings.PUBLIC_URL}{static('conversations/widget.js')}"
    return f'<script src="{address}" data-key="{grant.token.token_key}" async></script>'
