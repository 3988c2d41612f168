"""Terminal: a turn shown while it happens, with workers lent where none are running."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from agents.models import Envelope
from agents.steps import events, presence
from conversations.errors import ConversationError
from conversations.services import current, longest_wait
from knowledge.liveness import environment_of_child

# Lines of the terminal that are left to what stands around the answer.
MARGIN_LINES = 4
START_SECONDS = 60.0
STOP_SECONDS = 15.0


class Progress:
    """What is known of a turn so far, drawn anew with each event."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.activity = "asking"
        self.answer = ""
        self.note = ""
        self._spinner = Spinner("dots")

    def add(self, name: str, data: dict[str, Any]) -> None:
        """Take note of one event."""
        if name == "agent_start":
            self.activity = f"{data['role']} …"
            if data["attempt"] > 1:
                self.note = f"{data['role']} begins again, attempt {data['attempt']}"
        elif name == "agent_complete":
            self.done.append(f"{data['role']} {data['seconds'] * 1000:.0f} ms")
        elif name == "token":
            if data["replaces"]:
                self.note = "the answer is written again"
            self.answer = data["text"] if data["replaces"] else self.answer + data["text"]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what is going on, and below it the end of the answer."""
        self._spinner.update(text=Text(f"{self.activity}  {self.note}".strip(), "dim"))
        parts: list[RenderableType] = [self._spinner]
        if self.answer:
            lines = Text(self.answer).wrap(console, options.max_width)
            parts += lines[-max(1, console.height - MARGIN_LINES) :]
        yield Group(*parts)


def watch(console: Console, envelope: Envelope) -> None:
    """Show the turn until it ends, then only how long each step took.

    What is written while it goes on is not checked yet: it disappears, and the reply comes after.
    """
    progress = Progress()
    with Live(progress, console=console, transient=True, refresh_per_second=10):
        for event in events.follow(envelope.target_list, seconds=longest_wait(envelope)):
            if event is None:
                if current(envelope).ended:
                    break
                continue
            _, name, data = event
            if name == "workflow_complete":
                break
            progress.add(name, data)
    console.print(Text(" · ".join(progress.done), "dim"))
    if progress.note:
        console.print(Text(progress.note, "dim"))


class NoWorkers(ConversationError):
    """The workers this command started did not come up."""


@contextmanager
def workers(console: Console) -> Iterator[None]:
    """Have a consumer for every queue during the block; workers started for it end with it."""
    if not presence.missing_roles():
        yield
        return
    log = settings.STATE_DIR / "workers.log"
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "workers", "--together"]
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 our own command line
            command,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=os.environ | environment_of_child(),
        )
    try:
        with console.status("starting workers for this command"):
            _await_consumers(process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _await_consumers(process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while presence.missing_roles():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise NoWorkers(f"{NoWorkers.__doc__} Look into {settings.STATE_DIR / 'workers.log'}")
        time.sleep(0.1)
