"""A short run of chaos, on servers of its own."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from assistant.lab.chaos_report import ZEROS
from tests.e2e.conftest import CHECKOUT

# Each kind of death is tried by itself with every change; these go on for minutes.
pytestmark = pytest.mark.every_moment

RUN = ["manage.py", "chaos", "--json", "--minutes=0.3", "--pause=1.5", "--turns=60", "--seed=7"]
ELSEWHERE = ("STATE_DIR", "DATABASE_URL", "REDIS_URL")
AFTER_REPLIES = ["manage.py", "chaos", "--json", "--after-replies", "response"]


def run(command: list[str]) -> Any:
    """Run a command on servers of its own; return what it prints as JSON at the end."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if name not in ELSEWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_lost_answered_twice_or_paid_twice_while_parts_are_killed() -> None:
    found = run(RUN)
    assert {name: found[name] for name in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert found["turns"] > 0
    assert found["hops"] > found["turns"]
    assert found["faults"]


def test_every_call_is_counted_whose_worker_is_killed_after_its_reply() -> None:
    kills = run(AFTER_REPLIES)
    assert [kill["milliseconds"] for kill in kills] == [0, 50, 200]
    assert all(kill["ended"] for kill in kills)
    # Whichever came first, the kill or the commit of the reply.
    assert all(kill["counted"] == kill["asked"] == 1 + kill["lost"] for kill in kills)
