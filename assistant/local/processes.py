"""Processes: runs several commands side by side, in one terminal, and stops them together."""

import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO

from django.conf import settings
from rich.console import Console
from rich.text import Text

from assistant.local.paths import CHECKOUT
from assistant.logs import PROCESS
from knowledge.liveness import environment_of_child

log = logging.getLogger(__name__)

STOP_SECONDS = 10.0
RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0)
STEADY_SECONDS = 30.0
# A heap for every thread keeps what each of them once needed: three times the memory.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


@dataclass
class Child:
    """One command that is to keep running."""

    name: str
    command: list[str]
    colour: str
    process: "subprocess.Popen[bytes] | None" = None
    since: float = 0.0
    deaths: int = 0
    printer: threading.Thread = field(default_factory=threading.Thread)

    def begin(self, console: Console) -> None:
        """Start it; what it prints appears on the console behind its name."""
        self.since = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | ENVIRONMENT | {PROCESS: self.name} | environment_of_child(),
            # Its own session: Ctrl-C reaches us, and we stop the children in order.
            start_new_session=True,
        )
        self.printer = threading.Thread(
            target=self._print, args=(self.process.stdout, console), daemon=True
        )
        self.printer.start()

    def _print(self, output: IO[bytes], console: Console) -> None:
        for line in output:
            if settings.LOG_FORMAT == "json":
                # Each says itself whose it is.
                sys.stderr.write(line.decode(errors="replace"))
                continue
            text = line.decode(errors="replace").rstrip()
            console.print(Text.assemble((f"{self.name:>8} ", self.colour), text), soft_wrap=True)


def supervise(commands: dict[str, list[str]], meanwhile: Callable[[], None] | None = None) -> int:
    """Run `commands` until a signal comes, restarting what dies; return the exit code.

    `meanwhile` runs once in a thread beside them, e.g. to wait until they are ready.
    """
    console = Console(stderr=True)
    children = [
        Child(name, command, colour)
        for (name, command), colour in zip(commands.items(), itertools.cycle(COLOURS), strict=False)
    ]
    with _stop_signal() as stop:
        for child in children:
            child.begin(console)
        if meanwhile:
            threading.Thread(target=meanwhile, daemon=True).start()
        while not stop.wait(0.2):
            for child in children:
                _revive(child, console)
    end(child.process for child in children if child.process)
    return 0


def _revive(child: Child, console: Console) -> None:
    if child.process is None or child.process.poll() is None:
        return
    age = time.monotonic() - child.since
    pause = RESTART_SECONDS[min(child.deaths, len(RESTART_SECONDS) - 1)]
    if age < pause:
        return
    log.warning("%s ended with code %s: restarted", child.name, child.process.returncode)
    child.deaths = 0 if age > STEADY_SECONDS else child.deaths + 1
    child.begin(console)


@contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    stop = threading.Event()
    # A hang-up that is ignored stays so: `nohup` asked for it.
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    numbers = (signal.SIGINT, signal.SIGTERM, *hang_up)
    handlers = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def end(processes: "Iterator[subprocess.Popen[bytes]]") -> None:
    """Ask processes to stop, and kill those that have not after STOP_SECONDS."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in running:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def python(*words: str) -> list[str]:
    """Return the command line that runs `manage.py` with these words."""
    return [sys.executable, str(CHECKOUT / "manage.py"), *words]
