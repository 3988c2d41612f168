"""ASGI: the web process, and how much it takes with one request."""

import json
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import get_resolver

from conversations.mcp_http import WithMcp
from conversations.openai_errors import shaped

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


class TooLarge(Exception):
    """More has arrived than a request may hold."""


class Bounded:
    """An ASGI application that takes at most so many bytes with a request; else it answers 413."""

    def __init__(self, application: Application, limit: int) -> None:
        self.application, self.limit = application, limit

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection."""
        left, answered = self.limit, False

        async def counted_receive() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge
            return message

        async def noted_send(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        if content_length(scope) > self.limit:
            await self.refuse(send, scope["path"])
            return
        try:
            await self.application(scope, counted_receive, noted_send)
        except TooLarge:
            if not answered:
                await self.refuse(send, scope["path"])

    async def refuse(self, send: Send, path: str) -> None:
        """Answer as the API does. The rest of the body is not waited for."""
        detail = f"The request is larger than {self.limit:,} bytes."
        error: dict[str, Any] = {"code": "too_large", "detail": detail}
        body = json.dumps(shaped(path, 413, error)).encode()
        headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def content_length(scope: Message) -> int:
    """Return the bytes the request says it holds; 0 when it doesn't say."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")

# WhiteNoise hands out small files from memory or disk; that they are read at once is no matter.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")

django_application = get_asgi_application()
# Before the server listens: the first visitor need not wait for the imports of all pages.
URL_PATTERNS = get_resolver().url_patterns

# Room for five of the largest files, and for what stands between them.
application = Bounded(WithMcp(django_application), limit=5 * settings.MAX_UPLOAD_BYTES + 1_000_000)
