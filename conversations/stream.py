"""Stream: what happens in a turn, told to who asked while it happens, as server-sent events.

`conversation_events` tells what happens in a conversation in the same way.
"""

import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import redis
import redis.asyncio
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from django.http import Http404, HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
)
from knox.models import AuthToken
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import Envelope
from agents.steps import events
from conversations import event_shapes, page, refusals
from conversations.answers import reply
from conversations.api import owned_turn
from conversations.authentication import is_usable, key_of, revocation_stream
from conversations.errors import Forgotten
from conversations.lanes import FOLLOWERS, LANE
from conversations.refusals import Kind
from conversations.services import current
from conversations.widget import site_key
from knowledge.api.access import demand
from knowledge.identifiers import Scope

MEDIA_TYPE = "text/event-stream"
# For the schema: OpenAPI 3.1 has no words for what an event is like.
EVENTS = {"description": "Server-sent events, told while it happens."}
FIRST = "0-0"
# As Redis numbers the entries of a stream; more digits it would refuse.
ENTRY = re.compile(r"^\d{1,19}-\d{1,19}\Z")
# Told to browsers: milliseconds until they come back after a lost connection.
RETRY = b"retry: 2000\n\n"
# Keeps proxies from closing a silent connection.
HEARTBEAT = b": at work\n\n"
BLOCK_MS = 5000
LONGEST_BLOCK_MS = 15_000
AWAY = (redis.ConnectionError, redis.TimeoutError)
AWAY_SECONDS = 1.0
# As seldom as that a stream looks whether its key still holds.
KEY_SECONDS = 5.0
MOST_STREAMS = 500
CLIENT_NAME = "docent-stream"

Entry = tuple[str, dict[str, str]]
Parts = Callable[["Listener"], AsyncIterator[bytes]]

# What is open in this process.
_streams: set[object] = set()


class TooManyStreams(APIException):
    """This process follows as many turns and conversations as it can."""

    status_code = 429
    default_code = "busy"
    default_detail = "Too many clients are told of events here. Ask for what you follow instead."
    wait = 5.0


class KeyEnded(Exception):
    """The key that follows was revoked, or has expired."""


class Listener:
    """A connection to Redis that reads for who may: it hears when their key ends.

    A revocation rings. Should that be lost, the row is looked at whenever nothing was read, and
    no less often than every KEY_SECONDS.
    """

    def __init__(self, client: "redis.asyncio.Redis", key: AuthToken | None) -> None:
        self.client, self.key = client, key
        self.checked = time.monotonic()

    async def read(self, stream: str, after: str, *, block: int | None) -> list[Entry]:
        """Return what a stream has after an entry, `block` milliseconds later at the most.

        Raises KeyEnded.
        """
        streams: dict[Any, Any] = {stream: after}
        if self.key:
            streams[revocation_stream(self.key)] = FIRST
            block = block and min(block, round(KEY_SECONDS * 1000))
        try:
            results: Any = await self.client.xread(streams, count=100, block=block)
        except AWAY:
            await asyncio.sleep(AWAY_SECONDS)
            results = []
        told = dict(results or ())
        entries: list[Entry] = told.pop(stream, [])
        if told:
            raise KeyEnded
        await self._check(nothing_read=not entries)
        return entries

    async def _check(self, *, nothing_read: bool) -> None:
        is_late = time.monotonic() - self.checked >= KEY_SECONDS
        if self.key and (nothing_read or is_late):
            self.checked = time.monotonic()
            if not await is_usable(self.key):
                raise KeyEnded


class EventStream(JSONRenderer):
    """Lets clients that accept nothing but server-sent events ask; what is rendered are errors."""

    media_type = MEDIA_TYPE
    format = "sse"
    charset = "utf-8"


class StreamView(APIView):
    """Tells events to who may hear them, whether a browser's session or a key says so."""

    # Instead of a key with this scope, a browser's session will do.
    scope = Scope.CHAT
    permission_classes = ()
    renderer_classes = (EventStream, JSONRenderer)

    def head(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer as to GET, without a stream that nobody would read."""
        told: HttpResponseBase = self.get(  # type: ignore[attr-defined]  # of each
            request, *args, **kwargs
        )
        return HttpResponse(status=told.status_code, content_type=MEDIA_TYPE)

    def handle_exception(self, exc: Exception) -> Response:
        """Answer errors as JSON, whatever the client accepts."""
        self.request.accepted_renderer = JSONRenderer()
        self.request.accepted_media_type = JSONRenderer.media_type
        return super().handle_exception(exc)


class EventsView(StreamView):
    """The events of a turn: from its first, or from the one after Last-Event-ID."""

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "Last-Event-ID",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="Id of the last event that was received; go on after it.",
                pattern="^[0-9]{1,19}-[0-9]{1,19}$",
            )
        ],
        responses={
            (200, MEDIA_TYPE): OpenApiResponse(EVENTS, event_shapes.description()),
            204: None,
        },
        examples=[
            OpenApiExample(
                "A piece", event_shapes.EXAMPLE, media_type=MEDIA_TYPE, response_only=True
            )
        ],
    )
    def get(self, request: Request, turn_id: uuid.UUID) -> HttpResponseBase:
        """Follow a turn until `workflow_complete`, which brings the reply of `POST /api/chat/`.

        Each event but `gap` has an id; send that of the last one as `Last-Event-ID` to go on.
        204: everything was told before; a browser then stays away.
        """
        after = request.headers.get("Last-Event-ID", "") or FIRST
        if not ENTRY.match(after):
            raise ValidationError({"Last-Event-ID": "Send the id of an event, like 1763730000-0."})
        envelope, key = _turn(request, turn_id)
        is_over = envelope.ended and after != FIRST and after == _latest(envelope)
        if is_over:
            return HttpResponse(status=204)
        return streamed(partial(_events, envelope=envelope, after=after), key)


def streamed(
    parts: Parts,
    key: AuthToken | None,
    *,
    opening: bytes = RETRY,
    is_patient: bool = False,
) -> StreamingHttpResponse:
    """Return a response that sends the parts as they come, until the key ends that asked.

    Patient ones, which are silent for long, leave half of the places to those of turns. Raises
    TooManyStreams.
    """
    # A stream is open for minutes and needs no database meanwhile, but for a look now and then.
    connection.close()
    LANE.set(FOLLOWERS)
    if len(_streams) >= (MOST_STREAMS // 2 if is_patient else MOST_STREAMS):
        refusals.note(Kind.STREAMS)
        raise TooManyStreams
    response = StreamingHttpResponse(event_stream(parts, key, opening), content_type=MEDIA_TYPE)
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


def _turn(request: Request, turn_id: uuid.UUID) -> tuple[Envelope, AuthToken | None]:
    """Return a turn of this browser's, or one of this key's, and the key.

    Everyone else gets 401, 403 or 404.
    """
    if not page.is_closed(request._request):
        try:
            turn = page.visible_turn(request._request, str(turn_id)).envelope
            return turn, site_key(request._request)
        except Http404:
            pass  # Nothing of this browser's: its user may still own it.
    demand(request, StreamView.scope)
    return owned_turn(request, turn_id), key_of(request)


def _latest(envelope: Envelope) -> str:
    entries: Any = events.connection().xrevrange(envelope.target_list, count=1)
    return entries[0][0] if entries else ""


async def event_stream(
    parts: Parts, key: AuthToken | None, opening: bytes = RETRY
) -> AsyncIterator[bytes]:
    """Yield the parts of a stream, which are given a connection to Redis, until the key ends."""
    # Who comes back is told why it ended.
    with suppress(KeyEnded):
        async with listening(key) as listener:
            if opening:
                yield opening
            async for part in parts(listener):
                heed_leaving()
                yield part


@asynccontextmanager
async def listening(key: AuthToken | None) -> AsyncIterator[Listener]:
    """Have a connection to Redis during the block, which takes one of the places of streams."""
    stream = object()
    client = redis.asyncio.Redis.from_url(
        settings.REDIS_URL,
        # Longer than the blocking read, which would look like a dead server otherwise.
        socket_timeout=LONGEST_BLOCK_MS / 1000 + 5,
        socket_connect_timeout=2,
        decode_responses=True,
        # By which open streams are counted, in whatever process.
        client_name=CLIENT_NAME,
    )
    _streams.add(stream)
    try:
        yield Listener(client, key)
    finally:
        _streams.discard(stream)
        await client.aclose()


def open_streams() -> int:
    """Return how many streams are open, in all processes; each has a connection to Redis.

    Raises RedisError.
    """
    clients: Any = events.connection().client_list(_type="normal")
    return sum(client["name"] == CLIENT_NAME for client in clients)


def heed_leaving() -> None:
    """Raise CancelledError where the client has left.

    `sync_to_async` loses that word when it comes while the function runs.
    """
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


async def _events(listener: Listener, envelope: Envelope, after: str) -> AsyncIterator[bytes]:
    """Yield the events after an entry, and at the end how the turn stands in the database."""
    if after != FIRST and not await _reaches_back(listener.client, envelope.target_list, after):
        yield event("gap", "{}")
    while True:
        # Of a turn that has ended nothing more will come.
        block = None if envelope.ended else BLOCK_MS
        entries = await listener.read(envelope.target_list, after, block=block)
        for entry, fields in entries:
            after = entry
            if fields["event"] == "workflow_complete":
                yield event("workflow_complete", await final_data(envelope), entry)
                return
            yield event(fields["event"], fields["data"], entry)
        if not entries:
            # Who tells of the end may have died, or Redis may be away: the row knows.
            if data := await final_data(envelope):
                yield event("workflow_complete", data)
                return
            yield HEARTBEAT


async def _reaches_back(client: "redis.asyncio.Redis", stream: str, after: str) -> bool:
    """Whether a stream still has all that came after an entry, as far as can be known."""
    try:
        oldest: Any = await client.xrange(stream, count=1)
    except AWAY:
        return True
    return bool(oldest) and _number(oldest[0][0]) <= _number(after)


def _number(entry: str) -> tuple[int, ...]:
    return tuple(map(int, entry.split("-")))


def event(name: str, data: str, entry: str = "") -> bytes:
    """Return one server-sent event; `data` is JSON on one line."""
    number = f"id: {entry}\n" if entry else ""
    return f"{number}event: {name}\ndata: {data}\n\n".encode()


@sync_to_async
def final_data(envelope: Envelope) -> str:
    """Return the data of the last event as JSON; empty while the turn runs."""
    try:
        turn = current(envelope)
        if not turn.ended:
            return ""
        data = {
            "turn": str(turn.pk),
            "status": turn.status,
            "error_id": turn.error_id,
            "reply": reply(turn),
        }
    except Forgotten as error:
        data = {"turn": str(envelope.pk), "status": "forgotten", "detail": str(error)}
    finally:
        connection.close()
    return json.dumps(data)
