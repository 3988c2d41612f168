"""MCP over HTTP: who may call at /mcp, which Django decides, and the protocol for who may."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from anyio import to_thread
from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.api import asker
from conversations.authentication import KeyAuthentication, key_of
from conversations.mcp_tools import Visitor
from conversations.openai_api import JSONWhateverIsAccepted
from knowledge.api.access import reach_of
from knowledge.identifiers import Scope

PATHS = ("/mcp", "/mcp/")
# In the scope of a request: where the view leaves the visitor that it admits.
ADMITTED = "docent.admitted"
# What else is said in the headers of an admission, by whatever adds it to all, is said to clients.
OF_A_BODY = {b"content-type", b"content-length", b"allow"}

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class AdmissionView(APIView):
    """Lets in who calls with a key, with all that is checked and counted for the API."""

    scope = Scope.CHAT
    # A browser's session would let any page that a person visits ask in their name.
    authentication_classes = (KeyAuthentication,)
    # Clients that ask for a stream of what nobody asked for are told that there is none, by 405.
    content_negotiation_class = JSONWhateverIsAccepted
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse pages of other sites before anything else: they may have rebound a name."""
        origin = request.headers.get("Origin")
        if origin and not may_call(origin, request.get_host()):
            raise PermissionDenied("Pages of other sites may not call this.")
        super().initial(request, *args, **kwargs)

    def post(self, request: Request) -> Response:
        """Admit a visitor."""
        visitor = Visitor(asker(request), reach_of(request), key_of(request))
        request._request.scope[ADMITTED].append(visitor)  # type: ignore[attr-defined]
        return Response()


def may_call(origin: str, host: str) -> bool:
    """Return whether pages of an origin may call this host: its own, and those of CORS_ORIGINS."""
    if settings.CORS_ALLOW_ALL_ORIGINS or origin in settings.CORS_ALLOWED_ORIGINS:
        return True
    return origin == settings.PUBLIC_URL or urlsplit(origin).netloc == host


class WithMcp:
    """An ASGI application that speaks the Model Context Protocol at /mcp."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["path"] not in PATHS:
            await self.application(scope, receive, send)
            return
        admitted: list[Visitor] = []
        usual: list[tuple[bytes, bytes]] = []

        async def send_refusal(message: Message) -> None:
            if not admitted:
                await send(message)
            elif message["type"] == "http.response.start":
                usual.extend(
                    each for each in message["headers"] if each[0].lower() not in OF_A_BODY
                )

        async def send_usual(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *usual]}
            await send(message)

        await self.application(scope | {ADMITTED: admitted}, _headers_alone(), send_refusal)
        if admitted:
            respond = await to_thread.run_sync(import_string, settings.MCP_SERVER)
            async with ThreadSensitiveContext():
                await respond(admitted[0], scope, receive, send_usual)


def _headers_alone() -> Receive:
    """Return what receives a request without its body, which is read by who answers."""
    parts = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for part in parts:
            return part
        await asyncio.Event().wait()
        raise AssertionError("nothing sets that event")

    return receive
