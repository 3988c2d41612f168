"""Connection trial: the guided step of `models --add`, run by a process of its own for the admin.

So no web process loads what a question needs. What the process tells is kept in Redis for a day:
it is for the person who began it, and is done again if lost. The key goes to its standard input and
nowhere else.
"""

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.steps import events
from knowledge.liveness import environment_of_child

log = logging.getLogger(__name__)
KEY = "docent:connection"
KEPT_SECONDS = 86_400
# Five questions to a slow model, twice; who has said nothing for so long was killed.
SILENT_SECONDS = 1800
ENDED = "ended"


@dataclass(frozen=True)
class Told:
    """What the latest trial has told so far."""

    lines: list[dict[str, Any]]

    @property
    def is_running(self) -> bool:
        """Whether more will come."""
        if not self.lines or self.lines[-1]["stage"] == ENDED:
            return False
        return time.time() - float(self.lines[-1]["at"]) < SILENT_SECONDS

    def first(self, stage: str) -> dict[str, Any]:
        """Return what was told of a stage; empty when it was not reached."""
        return next((line for line in self.lines if line["stage"] == stage), {})

    def all(self, stage: str) -> list[dict[str, Any]]:
        """Return all that was told of a stage."""
        return [line for line in self.lines if line["stage"] == stage]


def told() -> Told:
    """Return what the latest trial has told. Raises redis.RedisError."""
    return Told([json.loads(line) for line in events.connection().lrange(KEY, 0, -1)])


def begin(options: Sequence[str], key: str, *, by: str) -> bool:
    """Begin a trial with these options of `models --add`; False while one is under way."""
    if told().is_running:
        return False
    events.connection().delete(KEY)
    _tell({"stage": "begun", "by": by})
    threading.Thread(target=_run, args=(command(options), key), daemon=True).start()
    return True


def command(options: Sequence[str]) -> list[str]:
    """Return the command line of the process."""
    manage = str(Path(settings.BASE_DIR) / "manage.py")
    return [sys.executable, manage, "models", "--json", "--key-from", "-", *options]


def _run(words: list[str], key: str) -> None:
    with subprocess.Popen(  # noqa: S603 our own command line
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ | environment_of_child(),
        text=True,
    ) as process:
        if process.stdin and process.stdout:
            process.stdin.write(f"{key}\n")
            process.stdin.close()
            for line in process.stdout:
                _tell(json.loads(line))
    log.info("models --add ended with code %s", process.returncode)
    _tell({"stage": ENDED, "code": process.returncode})


def _tell(line: dict[str, Any]) -> None:
    pipe = events.connection().pipeline()
    pipe.rpush(KEY, json.dumps(line | {"at": time.time()}))
    pipe.expire(KEY, KEPT_SECONDS)
    pipe.execute()
