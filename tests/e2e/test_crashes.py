"""Workers die; turns do not."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Docent

PATIENCE_SECONDS = 150.0


def workers(docent: Docent) -> list[int]:
    """Return the process ids of this Docent's manager and agents."""
    found = subprocess.run(["pgrep", "-f", "manage.py workers"], capture_output=True, text=True)
    mine = []
    for pid in map(int, found.stdout.split()):
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        if docent.environment["DATABASE_URL"].encode() + b"\0" in environment:
            mine.append(pid)
    return mine


def begin(docent: Docent, count: int) -> list[str]:
    questions = ("How do I descale the heater?", "How do I stop a brew?", "What is the phone app?")
    said = [
        docent.call(
            "POST",
            "/api/chat/",
            {"message": questions[n % 3], "collections": ["teapot"], "wait": False},
        )
        for n in range(count)
    ]
    assert {answer.status for answer in said} == {202}
    return [answer.body["turn_id"] for answer in said]


def endings(docent: Docent, turns: list[str]) -> list[dict[str, Any]]:
    ended: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + PATIENCE_SECONDS
    while len(ended) < len(turns) and time.monotonic() < until:
        for turn in set(turns) - ended.keys():
            reply = docent.call("GET", f"/api/turns/{turn}/").body
            if reply["status"] != "running":
                ended[turn] = reply
        time.sleep(0.3)
    return list(ended.values())


def assert_answered_once(docent: Docent, turns: list[str]) -> None:
    replies = endings(docent, turns)
    assert [reply["status"] for reply in replies] == ["completed"] * len(turns)
    for turn in turns:
        steps = docent.call("GET", f"/api/turns/{turn}/trace/").body["steps"]
        assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
        assert {step["status"] for step in steps} == {"done"}
        assert [step["wrote"].get("ends") for step in steps].count("completed") == 1


def test_killing_every_worker_while_turns_are_under_way_loses_and_repeats_none(
    docent: Docent,
) -> None:
    turns = begin(docent, 50)
    killed = workers(docent)
    assert len(killed) >= 3
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert_answered_once(docent, turns)
