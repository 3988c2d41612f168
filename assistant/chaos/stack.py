"""Stack: the processes of a running Docent, each started anew when it dies."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from assistant.embedded import state_folder
from assistant.management.commands.workers import processes
from assistant.processes import Child, end, python

# Two of each that does steps, so that one can be stopped while the other takes over.
PARTS = ("manager", "manager", "agents", "agents", "sweeper", "sweeper", "web")
LOOK_SECONDS = 0.2


@dataclass
class Stack:
    """Everything that runs: workers, sweepers, the web process, and the servers."""

    children: list[Child]
    restarts: dict[str, str]  # the command that restarts a server that is not ours
    ending: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> list[Child]:
        """Return the parts of this name whose process lives."""
        return [
            child
            for child in self.children
            if child.name == name and child.process and child.process.poll() is None
        ]

    def tell(self, child: Child, number: signal.Signals) -> None:
        """Send a signal to a part; one that has just died gets none."""
        if child.process and child.process.poll() is None:
            os.kill(child.process.pid, number)

    def restart(self, name: str, number: signal.Signals) -> bool:
        """End an embedded server with a signal, or run the command that restarts a given one.

        False when there is no such server, or no command. The keeper starts ours again.
        """
        if name in self.restarts:
            command = shlex.split(self.restarts[name])
            return bool(command) and subprocess.run(command, check=False).returncode == 0  # noqa: S603 the operator's own command
        written = Path(state_folder()) / f"{name}.pid"
        try:
            os.kill(int(written.read_text()), number)
        except (OSError, ValueError):
            return False
        return True

    def watch(self, console: Console) -> None:
        """Start again what died, until the end."""
        while not self.ending.wait(LOOK_SECONDS):
            for child in self.children:
                if child.process and child.process.poll() is not None:
                    child.begin(console)


def commands(port: int) -> list[tuple[str, list[str]]]:
    """Return the parts with their command lines."""
    lines = {
        "manager": python("workers", "manager"),
        "agents": python("workers", "--together", *_agents()),
        "sweeper": python("workers", "sweeper"),
        "web": python("serve", "--port", str(port)),
    }
    return [(name, lines[name]) for name in PARTS]


def _agents() -> list[str]:
    from_all = processes([])["agents"]
    return from_all[from_all.index("--together") + 1 :]


@contextmanager
def running(port: int, restarts: dict[str, str], console: Console) -> Iterator[Stack]:
    """Run a stack for the time of the block."""
    stack = Stack([Child(name, line, "cyan") for name, line in commands(port)], restarts)
    for child in stack.children:
        child.begin(console)
    watcher = threading.Thread(target=stack.watch, args=(console,), daemon=True)
    watcher.start()
    try:
        yield stack
    finally:
        stack.ending.set()
        watcher.join()
        for child in stack.children:
            stack.tell(child, signal.SIGCONT)
        end(child.process for child in stack.children if child.process)
