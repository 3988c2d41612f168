"""Chaos load: turns begun over HTTP, and a model server that fails at times and counts its pay."""

import http.client
import json
import random
import threading
from dataclasses import dataclass, field, replace

from agents.models import Envelope
from agents.names import Status
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_replies import Sensible

QUESTIONS = (
    "How do I set a model?",
    "Which commands are there?",
    "How are documents ingested?",
    "What does the sweeper do?",
    "How do I make a key for the API?",
)
SESSION = "chaos-"
PAUSE_SECONDS = 0.05
TIMEOUT_SECONDS = 20.0
# What a provider does at times.
FAILURES = (
    Response(status=500),
    Response(status=503),
    Response(status=429, headers={"Retry-After": "1"}),
    Response(reset=True),
    Response("half of a rep", cut_after=1),
    Response("", finish="content_filter"),
    Response("no JSON at all"),
)


@dataclass
class Load:
    """Turns under way: at most `at_once`, at most `most` in all."""

    port: int
    key: str
    collection: str
    at_once: int
    most: int
    chance: random.Random
    turns: dict[str, str] = field(default_factory=dict)  # id of each accepted turn, its mark
    refused: int = 0
    ending: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Begin turns until the end, as long as few enough are under way."""
        while not self.ending.is_set() and len(self.turns) < self.most:
            if under_way(list(self.turns)) >= self.at_once:
                self.ending.wait(PAUSE_SECONDS)
                continue
            self.begin(f"{len(self.turns) + self.refused + 1:06d}")

    def begin(self, mark: str) -> None:
        """Ask one question of its own; a server that is away is asked the next time."""
        body = {
            "message": f"{self.chance.choice(QUESTIONS)} This is case {mark}.",
            "collections": [self.collection],
            "session_id": SESSION + mark,
            "wait": False,
        }
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        web = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            web.request("POST", "/api/chat/", json.dumps(body), headers)
            response = web.getresponse()
            turn = json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError):
            # Whether it was accepted nobody knows; the database does, and is asked at the end.
            self.refused += 1
            self.ending.wait(0.5)
            return
        finally:
            web.close()
        if response.status == http.client.ACCEPTED:
            self.turns[turn["turn_id"]] = mark
        else:
            self.refused += 1
            self.ending.wait(0.5)


def under_way(turns: list[str]) -> int:
    """Return how many of these turns have not ended."""
    return Envelope.objects.filter(pk__in=turns, status=Status.RUNNING).count()


@dataclass
class Failing:
    """Sensible replies after some time, some of them spoilt; the same seed, the same chances."""

    chance: random.Random
    share: float = 0.04  # of calls that fail
    seconds: tuple[float, float] = (0.05, 0.4)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, call: Call) -> Response:
        """Return what is said to a call."""
        with self._lock:
            seconds = self.chance.uniform(*self.seconds)
            if self.chance.random() < self.share:
                return replace(self.chance.choice(FAILURES), seconds=seconds)
        return Sensible(seconds).reply(call)
