"""A short run of chaos, on servers of its own."""

import json
import os
import subprocess
import sys

from assistant.lab.chaos_report import ZEROS
from tests.e2e.conftest import CHECKOUT

RUN = ["manage.py", "chaos", "--json", "--minutes=0.3", "--pause=1.5", "--turns=60", "--seed=7"]
ELSEWHERE = ("STATE_DIR", "DATABASE_URL", "REDIS_URL")


def test_nothing_is_lost_answered_twice_or_paid_twice_while_parts_are_killed() -> None:
    done = subprocess.run(
        [sys.executable, *RUN],
        cwd=CHECKOUT,
        env={name: value for name, value in os.environ.items() if name not in ELSEWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: found[name] for name in ZEROS} == dict.fromkeys(ZEROS, 0)
    assert found["turns"] > 0
    assert found["hops"] > found["turns"]
    assert found["faults"]
