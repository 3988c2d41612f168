"""Fixtures: a state folder of one's own, and other processes that use its servers."""

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assistant.local import paths, shared_servers

PATIENCE_SECONDS = 60
LOCKS = ("keeper.lock", "postgres.running", "redis.running")
USE_UNTIL_TOLD = """
import sys
from assistant.local import shared_servers
shared_servers.join(durable=False)
print("joined", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty state folder; what runs in it ends with the test."""
    folder = paths.scratch_folder()
    monkeypatch.setenv("STATE_DIR", str(folder))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    yield folder
    shared_servers.leave(wait=True)
    eventually(lambda: not is_anything_left(folder))
    shutil.rmtree(folder)


@pytest.fixture
def another_process(state: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts processes that have joined; they leave when their input ends."""
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", USE_UNTIL_TOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=paths.CHECKOUT,
            env={**os.environ},
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def is_anything_left(state: Path) -> bool:
    """Whether the keeper or a server lives: each inherits or holds a lock."""
    return any(map(is_taken, (state / name for name in LOCKS)))


def is_taken(path: Path) -> bool:
    if not path.exists():
        return False
    with path.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def eventually(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; how long that takes decides nothing."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)
