"""Connections: how many the web process holds, and how long a client may take to send and to read.

uvicorn waits for ever for a request that was begun, and for who does not read. A proxy in front
reads requests whole; without one, whoever opens connections and leaves them so would take them all.
"""

import asyncio
import json
from collections import Counter
from enum import Enum, auto
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from time import monotonic
from typing import Any, ClassVar

import h11
from django.conf import settings
from uvicorn.protocols.http.h11_impl import H11Protocol

from conversations.limits import network
from conversations.openai_errors import openai_error

# For the head of a request, and for its body, which has longer the more of it there is. The rate is
# that of Apache's mod_reqtimeout.
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
BODY_BYTES_A_SECOND = 500
# For who reads nothing, while more waits to be sent than the buffers of the sockets take.
READ_SECONDS = 30.0
RETRY_SECONDS = 5


class Phase(Enum):
    """What a connection waits for."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    NEXT = auto()  # another request; for how long, uvicorn says


class BoundedProtocol(H11Protocol):
    """One connection, which is closed when its client takes too long.

    When there are too many, the one is closed first that has waited longest for a request.
    """

    # Of this process: how many from each address, and those whose request is not there, oldest
    # first.
    of_address: ClassVar[Counter[str]] = Counter()
    incomplete: ClassVar["dict[BoundedProtocol, None]"] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or refuse one too many."""
        super().connection_made(transport)
        self.phase, self.received, self.began = Phase.NEXT, 0, 0.0
        self.limit: asyncio.TimerHandle | None = None  # on what is to arrive
        self.end: asyncio.TimerHandle | None = None  # for who does not read
        self.address = _counted(self.client[0] if self.client else "")
        self.of_address[self.address] += 1
        if self.address and self.of_address[self.address] > settings.MAX_CONNECTIONS_PER_ADDRESS:
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many connections from one address.")
        elif len(self.connections) > settings.MAX_CONNECTIONS and not _make_room():
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, "Too many connections.")
        else:
            self._enter(Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self._enter(Phase.ANSWER)
        self._end_in(None)
        self.of_address[self.address] -= 1
        if not self.of_address[self.address]:
            del self.of_address[self.address]

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request."""
        self.received += len(data)
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on with the next request, which may be there already."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Wait a while for who does not read."""
        super().pause_writing()
        self._end_in(READ_SECONDS)

    def resume_writing(self) -> None:
        """Go on with who reads."""
        super().resume_writing()
        self._end_in(None)

    def timeout_keep_alive_handler(self) -> None:
        """Close a silent connection, also one whose last answer is never read."""
        super().timeout_keep_alive_handler()
        self._end_in(READ_SECONDS)

    def _look(self) -> None:
        """Find out what is waited for by now."""
        if self.transport.is_closing():
            return
        state, phase = self.conn.their_state, Phase.ANSWER
        if state is h11.SEND_BODY:
            phase = Phase.BODY
        elif state is h11.IDLE:
            phase = Phase.NEXT if self.timeout_keep_alive_task else Phase.HEAD
        if phase is not self.phase:
            self._enter(phase)

    def _enter(self, phase: Phase) -> None:
        self.phase, self.began = phase, monotonic()
        if phase is Phase.NEXT:
            self.received = 0
        self.incomplete.pop(self, None)
        if phase is not Phase.ANSWER:
            self.incomplete[self] = None
        seconds = {Phase.HEAD: HEAD_SECONDS, Phase.BODY: BODY_SECONDS}.get(phase)
        self._limit_to(seconds)

    def _limit_to(self, seconds: float | None) -> None:
        if self.limit:
            self.limit.cancel()
        self.limit = self.loop.call_later(seconds, self._is_late) if seconds else None

    def _is_late(self) -> None:
        elapsed = monotonic() - self.began
        is_quick = self.received >= elapsed * BODY_BYTES_A_SECOND
        # What nobody takes from the socket cannot come.
        if self.phase is Phase.BODY and (is_quick or self.flow.read_paused):
            self._limit_to(BODY_SECONDS)
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time.")

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Close, and say why where nothing was said yet; not to who only opened a connection."""
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        is_told = cycle is not None and cycle.response_started
        was_silent = status is HTTPStatus.REQUEST_TIMEOUT and not self.received
        if not (is_told or was_silent):
            self.transport.write(_answer(status, detail))
        self.transport.close()
        self._end_in(READ_SECONDS)

    def _end_in(self, seconds: float | None) -> None:
        """Drop the connection then, with what was not read of it."""
        if self.end:
            self.end.cancel()
        self.end = self.loop.call_later(seconds, self.transport.abort) if seconds else None


def _make_room() -> bool:
    """Drop the connection that has waited longest for a request; False: there is none."""
    oldest = next(iter(BoundedProtocol.incomplete), None)
    if oldest is None:
        return False
    del BoundedProtocol.incomplete[oldest]
    oldest.transport.abort()
    return True


def _counted(address: str) -> str:
    """Return what counts as one address; empty for a proxy, behind which are many."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""  # a Unix socket
    proxies = map(ip_network, settings.TRUSTED_PROXIES)
    return "" if any(parsed in proxy for proxy in proxies) else network(address)


def _answer(status: HTTPStatus, detail: str) -> bytes:
    """Return a whole response: an error that the clients of both our APIs understand."""
    code = "throttled" if status is HTTPStatus.TOO_MANY_REQUESTS else "too_slow"
    error = {"code": code, "detail": detail}
    body = json.dumps(error | openai_error(status, error)).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: {RETRY_SECONDS}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
