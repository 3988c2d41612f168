"""A slow role and a heavy user: neither holds up the others.

Nothing is told apart by time. What is slow waits for an event that only the test sets, so whoever
waits behind it never ends.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from typing import Any

import pytest

from agents.names import INSTANCES, Role
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_replies import cited
from tests.e2e.conftest import MOST_TURNS as LIMIT
from tests.e2e.conftest import THREADS, Answer, Docent, new_key
from tests.e2e.test_crashes import PATIENCE_SECONDS, endings
from tests.sensible import Sensible

# The process of all roles but the manager has fewer threads than there are turns under way here.
assert THREADS < LIMIT
AT_ONCE = INSTANCES[Role.RESPONSE]

SLOW = "How do I descale the heater?"
QUICK = "How do I stop a brew?"
DECLINED = "What is the weather in Paris today?"


class Gates:
    """Lets the response's calls about the slow question wait, each behind a gate of its own."""

    def __init__(self) -> None:
        self.asked: list[str] = []  # questions in the order of their calls
        self.closed: list[threading.Event] = []

    def reply(self, asked: Call) -> Response:
        """Answer the quick question at once, the slow one when its gate is opened."""
        question = SLOW if SLOW in asked.user else QUICK
        self.asked.append(question)
        said = Response(cited(asked))
        if question == QUICK:
            return said
        self.closed.append(threading.Event())
        return replace(said, until=self.closed[-1])

    def open(self) -> None:
        """Let the call go that has waited longest."""
        self.closed.pop(0).set()


@pytest.fixture(scope="module")
def docent(thinker: Docent) -> Docent:
    """Docent in the compact layout with a model for every role."""
    return thinker


@pytest.fixture(scope="module")
def heavy(docent: Docent) -> str:
    return new_key(docent, "heavy")


@pytest.fixture(scope="module")
def light(docent: Docent) -> str:
    return new_key(docent, "light")


@contextmanager
def held(docent: Docent, server: Sensible, heavy: str) -> Iterator[tuple[Gates, list[str]]]:
    """The heavy user's turns, as many as are allowed, all at the response; answered at the end."""
    gates = Gates()
    server.reset()
    server.says("response", gates.reply)
    turns = [ask(docent, heavy, SLOW).body["turn_id"] for _ in range(LIMIT)]
    try:
        until(lambda: states(docent) == (AT_ONCE, LIMIT - AT_ONCE))
        yield gates, turns
    finally:
        server.says("response", lambda asked: Response(cited(asked)))
        while gates.closed:
            gates.open()
        ended = endings(docent, turns)
    assert [reply["status"] for reply in ended] == ["completed"] * LIMIT


def ask(docent: Docent, key: str, message: str) -> Answer:
    said = {"message": message, "collections": ["teapot"], "wait": False}
    return docent.call("POST", "/api/chat/", said, key=key)


def ended(docent: Docent, key: str, message: str) -> dict[str, Any]:
    """Ask and return the reply, once there is one."""
    (reply,) = endings(docent, [ask(docent, key, message).body["turn_id"]])
    return reply


def under_way(docent: Docent, turns: list[str]) -> int:
    replies = (docent.call("GET", f"/api/turns/{turn}/").body for turn in turns)
    return [reply["status"] for reply in replies].count("running")


def states(docent: Docent) -> tuple[int, int]:
    """Steps of the response that run, and that wait."""
    queues = docent.call("GET", "/api/admin/queues/").body["queues"]
    (found,) = (each for each in queues if each["name"] == "response")
    return found["running"], found["queued"]


def until(came: Any) -> None:
    """Return when it is true; what never becomes true fails the test."""
    last = time.monotonic() + PATIENCE_SECONDS
    while not came():
        assert time.monotonic() < last
        time.sleep(0.1)


def test_a_role_that_waits_for_its_model_takes_no_thread_from_the_others(
    docent: Docent, server: Sensible, heavy: str, light: str
) -> None:
    with held(docent, server, heavy) as (gates, turns):
        harmful = {"passed": False, "category": "harmful_content"}
        server.says(
            "guardrails", lambda asked: harmful if DECLINED in asked.user else {"passed": True}
        )
        assert ended(docent, light, "/help")["status"] == "completed"
        assert ended(docent, light, DECLINED)["status"] == "completed"
        assert under_way(docent, turns) == LIMIT
        assert states(docent) == (AT_ONCE, LIMIT - AT_ONCE)
        assert gates.asked == [SLOW] * AT_ONCE


def test_a_user_with_one_question_goes_before_the_second_of_a_user_with_many(
    docent: Docent, server: Sensible, heavy: str, light: str
) -> None:
    with held(docent, server, heavy) as (gates, turns):
        turn = ask(docent, light, QUICK).body["turn_id"]
        until(lambda: states(docent) == (AT_ONCE, LIMIT - AT_ONCE + 1))
        gates.open()
        (reply,) = endings(docent, [turn])
        assert reply["status"] == "completed"
        assert under_way(docent, turns) >= LIMIT - 1
        assert gates.asked[: AT_ONCE + 1] == [SLOW] * AT_ONCE + [QUICK]


def test_a_user_with_too_many_turns_under_way_is_refused_and_another_is_not(
    docent: Docent, server: Sensible, heavy: str, light: str
) -> None:
    with held(docent, server, heavy):
        assert ask(docent, heavy, SLOW).body["code"] == "too_many_turns"
        assert int(retry_after(docent, heavy)) > 0
        assert ended(docent, light, "/help")["status"] == "completed"


def retry_after(docent: Docent, key: str) -> str:
    """Ask, and return the header that says when to try again."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    with closing(HTTPConnection("127.0.0.1", docent.port, timeout=30)) as connection:
        connection.request("POST", "/api/chat/", json.dumps({"message": SLOW}), headers)
        with connection.getresponse() as response:
            assert response.status == 429
            return response.headers["Retry-After"]
