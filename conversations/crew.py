"""Crew: lends workers to a command that needs an answer where none are running."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from rich.console import Console

from agents import presence
from conversations.errors import ConversationError
from knowledge.mortality import tied

START_SECONDS = 60.0
STOP_SECONDS = 15.0


class NoCrew(ConversationError):
    """The workers this command started did not come up."""


@contextmanager
def crew(console: Console) -> Iterator[None]:
    """Make sure every queue has a consumer while the block runs; workers of our own end with it."""
    if not presence.missing():
        yield
        return
    log = settings.STATE_DIR / "workers.log"
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "workers", "--together"]
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 our own command line
            command,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=os.environ | tied(),
        )
    try:
        with console.status("starting workers for this command"):
            _await(process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _await(process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while presence.missing():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise NoCrew(f"{NoCrew.__doc__} Look into {settings.STATE_DIR / 'workers.log'}")
        time.sleep(0.1)
