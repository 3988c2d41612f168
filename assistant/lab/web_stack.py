"""Web stack: everything of `up` for a measurement over HTTP, with clients that keep the time."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from typing import Any

import httpx2
from django.core.management import call_command

from assistant.lab.bench_inflight import COLLECTION, take_in
from assistant.lab.rehearsal import free_port, working
from assistant.local.processes import Child, python
from assistant.management.commands.workers import processes

HOST = "127.0.0.1"
PATIENCE_SECONDS = 900.0
# As many clients as are wanted are one user here, and one address.
UNLIMITED = {
    "MAX_TURNS_PER_KEY": "2000",
    "MAX_TURNS": "2000",
    "MAX_REQUESTS_PER_KEY": "0",
    "MAX_REQUESTS_PER_ADDRESS": "0",
}


@dataclass
class WebStack:
    """A running Docent, its address, keys, and its processes."""

    port: int
    keys: list[str]  # of a user each
    children: list[Child]

    @cached_property
    def web(self) -> httpx2.AsyncClient:
        """A client that all share who ask directly; making one takes a while."""
        return self.client()

    def client(self, port: int = 0) -> httpx2.AsyncClient:
        """Return a client with the first key; through a proxy, if its port is given."""
        return httpx2.AsyncClient(
            base_url=f"http://{HOST}:{port or self.port}",
            headers=bearer(self.keys[0]),
            timeout=PATIENCE_SECONDS,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        )


def bearer(key: str) -> dict[str, str]:
    """Return the header that brings a key."""
    return {"Authorization": f"Bearer {key}"}


@contextmanager
def web_stack(users: int = 1) -> Iterator[WebStack]:
    """Run it for the time of the block, with two pages in a collection."""
    take_in()
    printed = StringIO()
    with redirect_stderr(StringIO()):
        for number in range(users):
            call_command("apikey", "create", f"bench{number}", "--staff", stdout=printed)
    port = free_port()
    web = {"web": python("serve", "--port", str(port))}
    with working(processes([]) | web) as children:
        yield WebStack(port, printed.getvalue().split(), children)


@dataclass
class Answered:
    """What a request came to; `status` 0: no answer at all."""

    status: int
    seconds: float
    retry_after: str = ""
    body: Any = field(default=None, repr=False)

    @property
    def is_fair(self) -> bool:
        """Whether it was answered, or sent away with a time to come back."""
        return self.status in {200, 201, 202} or (self.status == 429 and bool(self.retry_after))


async def asked(
    client: httpx2.AsyncClient, method: str, path: str, body: Any = None, key: str = ""
) -> Answered:
    """Return what a request came to, and after how long; `key` is another than the client's."""
    began = time.perf_counter()
    try:
        headers = bearer(key) if key else None
        response = await client.request(method, path, json=body, headers=headers)
    except httpx2.HTTPError:
        return Answered(0, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    is_json = response.headers.get("content-type", "").startswith("application/json")
    said = response.json() if is_json else None
    return Answered(response.status_code, seconds, response.headers.get("retry-after", ""), said)


async def begun(client: httpx2.AsyncClient, message: str, **more: Any) -> dict[str, Any]:
    """Begin a turn and return it."""
    question = {"message": message, "collections": [COLLECTION], "wait": False} | more
    answer = await asked(client, "POST", "/api/chat/", question)
    if answer.status != httpx2.codes.ACCEPTED:
        raise RuntimeError(f"A question was not taken: {answer.status} {answer.body}")
    turn: dict[str, Any] = answer.body
    return turn


@dataclass(frozen=True)
class Told:
    """One event, and when it came, by `time.perf_counter`."""

    at: float
    id: str
    name: str
    data: dict[str, Any]


async def followed(
    client: httpx2.AsyncClient, turn: str, after: str = "", encoding: str = "identity"
) -> AsyncIterator[Told]:
    """Yield the events of a turn, from its first or after one."""
    headers = {"Accept-Encoding": encoding} | ({"Last-Event-ID": after} if after else {})
    path = f"/api/turns/{turn}/events/"
    async with client.stream("GET", path, headers=headers) as response:
        fields: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                fields[name] = value
            elif "event" in fields:
                data = json.loads(fields["data"])
                yield Told(time.perf_counter(), fields.get("id", ""), fields["event"], data)
                fields = {}


def spread(seconds: list[float]) -> dict[str, float]:
    """Return median, 95th percentile and the longest, in milliseconds."""
    ordered = sorted(seconds) or [0.0]
    places = {"p50": 50, "p95": 95, "max": 100}
    last = len(ordered) - 1
    return {
        name: round(1000 * ordered[min(last, len(ordered) * place // 100)], 1)
        for name, place in places.items()
    }
