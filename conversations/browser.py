"""Browser: the conversations that began in one browser, kept in its session."""

import secrets
import uuid
from dataclasses import dataclass

from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.http import Http404, HttpRequest

from agents.models import Envelope
from conversations.models import Conversation
from conversations.services import Asker

KEY = "conversations"
MOST_KEPT = 50


@dataclass(frozen=True)
class Talk:
    """A turn that this browser may see, and the conversation it is in."""

    conversation: Conversation
    envelope: Envelope

    @property
    def asker(self) -> Asker:
        """Who goes on with the conversation: whoever began it."""
        return Asker(self.conversation.owner, self.conversation.user_id)


def shut(request: HttpRequest) -> bool:
    """Return whether the start page is closed to who looks at it."""
    return settings.START_PAGE == "staff" and not (request.user.is_active and request.user.is_staff)


def new_name() -> str:
    """Return a name for a conversation. Nobody can guess it: it is what keeps others out."""
    return f"web-{secrets.token_urlsafe(24)}"


def keep(request: HttpRequest, name: str) -> None:
    """Let this browser see the conversation from now on, even if it goes away before the answer."""
    # As stored now, not as loaded: another tab may have begun a conversation meanwhile.
    stored = SessionStore(request.session.session_key).get(KEY, [])
    names = [kept for kept in stored if kept != name]
    request.session[KEY] = [*names, name][-MOST_KEPT:]
    request.session.save()


def talk(request: HttpRequest, turn: str) -> Talk:
    """Return the turn of this id if this browser's; Http404 for one that isn't or doesn't exist."""
    try:
        envelope = Envelope.objects.get(pk=uuid.UUID(turn))
    except (ValueError, Envelope.DoesNotExist) as error:
        raise Http404 from error
    conversation = (
        Conversation.objects.select_related("owner")
        .filter(pk=envelope.conversation_id, session__in=request.session.get(KEY, []))
        .first()
    )
    if conversation is None:
        raise Http404
    return Talk(conversation, envelope)
