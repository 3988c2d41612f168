"""Conversation events: what is said in a conversation, told to who follows it while it is said.

A bell in Redis says that there is something; what it is stands in PostgreSQL. Who comes back is
told all after the last message they heard.
"""

import json
import time
import uuid
from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from typing import Any

import redis.asyncio
from asgiref.sync import sync_to_async
from django.db import connection
from django.db.models import Exists
from django.http import Http404, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from knox.models import AuthToken
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from conversations import page
from conversations.api import owned_conversation
from conversations.authentication import key_of
from conversations.conversation_api import MessagesQuery, said_message
from conversations.errors import UnknownMessage
from conversations.handover import UNENDED, bell
from conversations.models import Conversation, Message
from conversations.services import messages_after
from conversations.stream import (
    AWAY,
    EVENTS,
    FIRST,
    HEARTBEAT,
    LONGEST_BLOCK_MS,
    MEDIA_TYPE,
    Listener,
    StreamView,
    event,
    streamed,
)
from conversations.widget import site_key
from knowledge.api.access import demand

# A stream ends after this; who still follows comes back by itself.
LONGEST_SECONDS = 900.0
MOST_AT_ONCE = 100
FORGOTTEN = {"status": "forgotten", "taken": False}
EXAMPLE = """id: 6c2b7a8e-6d7e-4f0b-8b5e-3f1f0a4e9d21
event: message
data: {"id": "6c2b7a8e-6d7e-4f0b-8b5e-3f1f0a4e9d21", "author": "staff", "text": "Hello", ...}

event: status
data: {"status": "with_staff", "taken": true}

"""


class ConversationEventsView(StreamView):
    """What is said in a conversation: from its first message, or after Last-Event-ID."""

    @extend_schema(
        parameters=[
            MessagesQuery,
            OpenApiParameter(
                "Last-Event-ID",
                OpenApiTypes.UUID,
                OpenApiParameter.HEADER,
                description="Id of the last message that was received; comes before `after`.",
            ),
        ],
        responses={(HTTPStatus.OK, MEDIA_TYPE): EVENTS},
        examples=[OpenApiExample("With staff", EXAMPLE, media_type=MEDIA_TYPE, response_only=True)],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        """Follow a conversation, named by its `session_id` or its id.

        `message` brings what `GET …/messages/` lists, with the message's id as its own. `status`
        is told at the beginning and whenever it changes: `with_staff` while a person answers, and
        whether one has `taken` it. A stream ends after 15 minutes; come back with Last-Event-ID.
        """
        conversation, key = _conversation(request, name)
        after = _last_heard(request)
        # Refused here: later nothing but the end of the stream could say so.
        messages_after(conversation, after, most=1)
        parts = partial(_events, conversation=conversation, after=after)
        return streamed(parts, key, is_patient=True)


def _last_heard(request: Request) -> uuid.UUID | None:
    """Return the id of the last message a client has; None: from the first."""
    if header := request.headers.get("Last-Event-ID"):
        try:
            return uuid.UUID(header)
        except ValueError as error:
            raise ValidationError({"Last-Event-ID": "Send the id of a message."}) from error
    after: uuid.UUID | None = MessagesQuery.read(request.query_params).get("after")
    return after


def _conversation(request: Request, name: str) -> tuple[Conversation, AuthToken | None]:
    """Return a conversation of this browser's, or one of this key's, and the key.

    Everyone else gets 401, 403 or 404.
    """
    if not page.is_closed(request._request):
        try:
            theirs = page.visible_conversation(request._request, name)
            return theirs, site_key(request._request)
        except Http404:
            pass  # Nothing of this browser's: its user may still own it.
    demand(request, StreamView.scope)
    return owned_conversation(request, name), key_of(request)


async def _events(
    listener: Listener, conversation: Conversation, after: uuid.UUID | None
) -> AsyncIterator[bytes]:
    """Yield what was said after a message, and then what is said."""
    stream, until = bell(conversation.pk), time.monotonic() + LONGEST_SECONDS
    heard = await _latest(listener.client, stream)
    told: dict[str, Any] = {}
    while told != FORGOTTEN and time.monotonic() < until:
        messages, state = await news(conversation, after)
        for message in messages:
            after = message.pk
            yield event("message", said_message(message).model_dump_json(), str(after))
        if state != told:
            told = state
            yield event("status", json.dumps(told))
        if len(messages) == MOST_AT_ONCE:
            continue
        if rings := await listener.read(stream, heard, block=LONGEST_BLOCK_MS):
            heard = rings[-1][0]
        else:
            yield HEARTBEAT


async def _latest(client: redis.asyncio.Redis, stream: str) -> str:
    try:
        entries = await client.xrevrange(stream, count=1)
    except AWAY:
        return FIRST
    return str(entries[0][0]) if entries else FIRST


# Not in the thread of its request, which would be kept for as long as the stream is open.
@sync_to_async(thread_sensitive=False)
def news(
    conversation: Conversation, after: uuid.UUID | None
) -> tuple[list[Message], dict[str, Any]]:
    """Return what was said after a message, and how it stands now."""
    is_taken = Exists(conversation.handovers.filter(**UNENDED, assigned__isnull=False))
    state = Conversation.objects.filter(pk=conversation.pk).annotate(taken=is_taken)
    try:
        messages = messages_after(conversation, after, most=MOST_AT_ONCE)
        return messages, dict(state.values("status", "taken").get())
    except (Conversation.DoesNotExist, UnknownMessage):
        return [], FORGOTTEN
    finally:
        connection.close()
