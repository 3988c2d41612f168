"""Faults: everything that is done to a running Docent, each a small function with a name."""

import random
import signal
import time
from collections.abc import Callable

import redis
from django.utils.timezone import now
from rich.console import Console

from agents import events
from agents.models import Step
from agents.names import Role
from assistant.chaos.recovery import Committed
from assistant.chaos.stack import Stack
from assistant.servers import POSTGRES, REDIS

# Longer than a lease: who took the step over has finished when the stopped one goes on.
STOPPED_SECONDS = Step.LEASE.total_seconds() + 8

Fault = Callable[[Stack, random.Random], str]


def _kill(name: str) -> Fault:
    def kill(stack: Stack, chance: random.Random) -> str:
        living = stack.named(name)
        if not living:
            return ""
        stack.tell(chance.choice(living), signal.SIGKILL)
        return f"killed {name}"

    return kill


def _kill_all_workers(stack: Stack, chance: random.Random) -> str:
    for name in ("manager", "agents"):
        for child in stack.named(name):
            stack.tell(child, signal.SIGKILL)
    return "killed every worker at once"


def _stop_for_longer_than_a_lease(stack: Stack, chance: random.Random) -> str:
    child = chance.choice(stack.named("agents") or stack.named("manager"))
    stack.tell(child, signal.SIGSTOP)
    time.sleep(STOPPED_SECONDS)
    stack.tell(child, signal.SIGCONT)
    return f"stopped {child.name} for {STOPPED_SECONDS:.0f} s and let it go on"


def _ask_to_stop(stack: Stack, chance: random.Random) -> str:
    living = stack.named("agents")
    if not living:
        return ""
    stack.tell(chance.choice(living), signal.SIGTERM)
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
    waiting = [ring for ring in _waiting(client, queue) for _ in range(chance.randint(1, 3))]
    return int(bool(waiting)) and len(waiting[: client.rpush(queue, *waiting)])


def _reorder(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    waiting = _taken(client, queue)
    chance.shuffle(waiting)
    if waiting:
        client.rpush(queue, *waiting)
    return len(waiting)


def _delay(client: "redis.Redis", queue: str, chance: random.Random) -> int:
    waiting = _taken(client, queue)
    if waiting:
        time.sleep(chance.uniform(0.2, 2))
        client.rpush(queue, *waiting)
    return len(waiting)


def _waiting(client: "redis.Redis", queue: str) -> list[str]:
    found: list[str] = client.lrange(queue, 0, -1)  # type: ignore[assignment]
    return found


def _taken(client: "redis.Redis", queue: str) -> list[str]:
    found = _waiting(client, queue)
    client.delete(queue)
    return found


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


def one(stack: Stack, chance: random.Random, console: Console) -> Committed | None:
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
    return Committed(name, at)
