"""Connections are cut off that take too long, and bounded; others are served meanwhile."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.conf import LazySettings

from assistant import connections
from assistant.asgi import Message, Receive, Send
from tests.conversations.conftest import served

WHOLE = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: he"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n123"
LONG = b"GET /long HTTP/1.1\r\nHost: here\r\n\r\n"
PATIENCE_SECONDS = 20.0

Connect = Callable[[bytes], socket.socket]


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    """Say how long the body was; to some much more."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message["body"])
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(1000 if scope["path"] == "/long" else 0):
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
    await send({"type": "http.response.body", "body": b"%d bytes" % length})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(echo) as port:
        yield port


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can wait for."""
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "READ_SECONDS"):
        monkeypatch.setattr(connections, name, 0.3)


@pytest.fixture
def connect(port: int) -> Iterator[Connect]:
    """Open a connection and send this."""
    with ExitStack() as opened:

        def begin(sent: bytes) -> socket.socket:
            new = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            new.settimeout(PATIENCE_SECONDS)
            new.sendall(sent)
            return new

        yield begin


def answered(client: socket.socket) -> bytes:
    """Return everything that comes until the server closes; nothing where it broke off."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status(client: socket.socket) -> int:
    return int(client.recv(65536).split(b" ")[1])


@pytest.mark.parametrize("sent", [HALF_A_HEAD, HALF_A_BODY])
def test_half_a_request_is_cut_off_while_others_are_answered(connect: Connect, sent: bytes) -> None:
    slow = [connect(sent) for _ in range(20)]
    assert status(connect(WHOLE)) == 200
    for client in slow:
        assert b"408 Request Timeout" in answered(client)


def test_who_sends_nothing_is_told_nothing(connect: Connect) -> None:
    assert answered(connect(b"")) == b""


def test_a_body_may_take_as_long_as_it_goes_on(connect: Connect) -> None:
    pieces = 12
    client = connect(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 6000\r\n\r\n")
    for _ in range(pieces):
        client.sendall(b"x" * 500)
        time.sleep(connections.BODY_SECONDS / 4)
    assert b"6000 bytes" in client.recv(65536)


def test_who_does_not_read_is_dropped(connect: Connect) -> None:
    reader = connect(LONG)
    until = time.monotonic() + PATIENCE_SECONDS
    while connections.BoundedProtocol.of_address and time.monotonic() < until:
        time.sleep(0.02)
    assert not connections.BoundedProtocol.of_address
    reader.close()


def test_an_address_has_so_many_and_a_proxy_any_number(
    connect: Connect, settings: LazySettings
) -> None:
    settings.MAX_CONNECTIONS_PER_ADDRESS = 2
    assert [status(connect(WHOLE)) for _ in range(3)] == [200] * 3
    settings.TRUSTED_PROXIES = ["10.0.0.0/8"]
    kept = [connect(WHOLE) for _ in range(2)]
    assert [status(each) for each in kept] == [200] * 2
    refusal = answered(connect(b""))
    assert b"429 Too Many Requests" in refusal
    assert b"Retry-After: 5" in refusal
    assert b'"code": "throttled"' in refusal


def test_a_full_house_makes_room_by_closing_what_waits_longest(
    connect: Connect, settings: LazySettings
) -> None:
    settings.MAX_CONNECTIONS = 2
    oldest, younger = connect(HALF_A_HEAD), connect(HALF_A_HEAD)
    assert status(connect(WHOLE)) == 200
    assert answered(oldest) == b""
    assert b"408" in answered(younger)
