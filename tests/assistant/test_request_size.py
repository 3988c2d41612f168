"""Requests that are too large are refused while they arrive."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from assistant.asgi import Bounded, Message, Receive, Send


class Echo:
    """Reads the whole body, then says how long it was."""

    def __init__(self) -> None:
        self.read = 0

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            self.read += len(message["body"])
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(self.read).encode()})


def answer(parts: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]] = ()) -> tuple[int, int]:
    """Return the status of a request in these parts, and how much of it was let through."""
    sent, read = exchange(parts, headers, "/api/chat/")
    return sent[0]["status"], read


def exchange(
    parts: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]], path: str
) -> tuple[list[Message], int]:
    application, sent, waiting = Echo(), list[Message](), list(parts)

    async def receive() -> Message:
        body = waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(waiting)}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "headers": list(headers), "path": path}
    asyncio.run(Bounded(application, limit=10)(scope, receive, send))
    return sent, application.read


def test_a_body_within_the_limit_passes_whole() -> None:
    assert answer([b"12345", b"67890"]) == (200, 10)


def test_a_body_that_grows_too_large_is_cut_off_where_it_does() -> None:
    assert answer([b"12345", b"678901", b"never read"]) == (413, 5)


def test_a_body_that_says_it_is_too_large_is_not_read_at_all() -> None:
    assert answer([b"1"], [(b"content-length", b"11")]) == (413, 0)


def test_clients_of_openai_are_told_so_in_their_shape() -> None:
    sent, _ = exchange([b"1"], [(b"content-length", b"11")], "/v1/chat/completions")
    assert json.loads(sent[1]["body"])["error"]["code"] == "too_large"
