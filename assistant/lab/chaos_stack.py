"""Chaos stack: the processes of a running Docent, and everything a chaos run does to them."""

import os
import random
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import redis
from django.utils.timezone import now
from rich.console import Console

from agents.models import Step
from agents.names import Role
from agents.steps import events
from assistant.lab.chaos_report import CommittedFault
from assistant.local.paths import state_folder
from assistant.local.processes import Child, end, python
from assistant.local.servers import POSTGRES, REDIS
from assistant.management.commands.workers import processes

# Two of each that does steps, so that one can be stopped while the other takes over.
PARTS = ("manager", "manager", "agents", "agents", "sweeper", "sweeper", "web")
LOOK_SECONDS = 0.2
# Longer than a lease: who took the step over has finished when the stopped one goes on.
STOPPED_SECONDS = Step.LEASE.total_seconds() + 8


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

    def send(self, child: Child, number: signal.Signals) -> None:
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
        path = state_folder() / f"{name}.pid"
        try:
            os.kill(int(path.read_text()), number)
        except (OSError, ValueError):
            return False
        return True

    def watch(self, console: Console) -> None:
        """Start again what died, until the end."""
        while not self.ending.wait(LOOK_SECONDS):
            for child in self.children:
                if child.process and child.process.poll() is not None:
                    child.begin(console)


# Does its harm and returns what that was; empty when it could not be done.
Fault = Callable[[Stack, random.Random], str]


def commands(port: int) -> list[tuple[str, list[str]]]:
    """Return the parts with their command lines."""
    lines = {
        "manager": python("workers", "manager"),
        "agents": python("workers", "--together", *_agents(), "ingest"),
        "sweeper": python("workers", "sweeper"),
        "web": python("serve", "--port", str(port)),
    }
    return [(name, lines[name]) for name in PARTS]


def _agents() -> list[str]:
    command = processes([])["agents"]
    return command[command.index("--together") + 1 :]


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
            stack.send(child, signal.SIGCONT)
        end(child.process for child in stack.children if child.process)


def _kill(name: str) -> Fault:
    def kill(stack: Stack, chance: random.Random) -> str:
        living = stack.named(name)
        if not living:
            return ""
        stack.send(chance.choice(living), signal.SIGKILL)
        return f"killed {name}"

    return kill


def _kill_all_workers(stack: Stack, chance: random.Random) -> str:
    for name in ("manager", "agents"):
        for child in stack.named(name):
            stack.send(child, signal.SIGKILL)
    return "killed every worker at once"


def _stop_for_longer_than_a_lease(stack: Stack, chance: random.Random) -> str:
    child = chance.choice(stack.named("agents") or stack.named("manager"))
    stack.send(child, signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    stack.send(child, signal.SIGCONT)
    return f"stopped {child.name} for {STOPPED_SECONDS:.0f} s and let it go on"


def _ask_to_stop(stack: Stack, chance: random.Random) -> str:
    living = stack.named("agents")
    if not living:
        return ""
    stack.send(chance.choice(living), signal.SIGTERM)
    return "asked agents to stop"


def _restart_redis(stack: Stack, chance: random.Random) -> str:
    return "restarted Redis" if stack.restart(REDIS, signal.SIGKILL) else ""


def _flush_redis(stack: Stack, chance: random.Random) -> str:
    events.connection().flushdb()
    return "flushed Redis"


def _restart_postgres(stack: Stack, chance: random.Random) -> str:
    # SIGQUIT is PostgreSQL's immediate shutdown: it recovers from its log when it starts.
    return "restarted PostgreSQL" if stack.restart(POSTGRES, signal.SIGQUIT) else ""


def _rings(act: Callable[["redis.Redis", str, random.Random], int], done: str) -> Fault:
    def disturb(stack: Stack, chance: random.Random) -> str:
        client = events.connection()
        changed = sum(act(client, role.queue, chance) for role in Role)
        return f"{done} {changed} rings" if changed else ""

    return disturb


def _drop(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    return 1 if client.lpop(queue) else 0


def _repeat(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    rings = [ring for ring in _waiting(client, queue) for _ in range(chance.randint(1, 3))]
    if rings:
        client.rpush(queue, *rings)
    return len(rings)


def _reorder(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    rings = _take_all(client, queue)
    chance.shuffle(rings)
    if rings:
        client.rpush(queue, *rings)
    return len(rings)


def _delay(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    rings = _take_all(client, queue)
    if rings:
        time.sleep(chance.uniform(0.2, 2))
        client.rpush(queue, *rings)
    return len(rings)


def _waiting(client: "redis.Redis", queue: str) -> list[str]:
    rings: list[str] = client.lrange(queue, 0, -1)  # type: ignore[assignment]
    return rings


def _take_all(client: "redis.Redis", queue: str) -> list[str]:
    rings = _waiting(client, queue)
    client.delete(queue)
    return rings


# How often each comes, against the others.
FAULTS: dict[str, tuple[Fault, int]] = {
    "kill agents": (_kill("agents"), 6),
    "kill manager": (_kill("manager"), 4),
    "kill sweeper": (_kill("sweeper"), 2),
    "kill web": (_kill("web"), 2),
    "kill every worker": (_kill_all_workers, 1),
    "ask agents to stop": (_ask_to_stop, 2),
    "stop past the lease": (_stop_for_longer_than_a_lease, 1),
    "restart Redis": (_restart_redis, 2),
    "flush Redis": (_flush_redis, 2),
    "restart PostgreSQL": (_restart_postgres, 1),
    "drop rings": (_rings(_drop, "dropped"), 3),
    "repeat rings": (_rings(_repeat, "repeated"), 3),
    "reorder rings": (_rings(_reorder, "reordered"), 2),
    "delay rings": (_rings(_delay, "delayed"), 2),
}


def commit_fault(stack: Stack, chance: random.Random, console: Console) -> CommittedFault | None:
    """Commit one fault, drawn by weight; return it, or None when it could not be."""
    at = now()
    name = chance.choices(list(FAULTS), [weight for _, weight in FAULTS.values()])[0]
    try:
        done = FAULTS[name][0](stack, chance)
    except (redis.RedisError, OSError) as error:
        # What it was to happen to is away already.
        console.print(f"[dim]{name}: not possible now ({type(error).__name__})[/]")
        return None
    if not done:
        return None
    console.print(f"[yellow]{done}[/]")
    return CommittedFault(name, at)
