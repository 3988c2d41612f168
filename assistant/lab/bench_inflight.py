"""In flight: many turns at once against a model server that takes its time, by real workers."""

import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from rich.console import Console

from agents import envelopes
from agents.models import Envelope, Step
from agents.names import KIND, Role, Route, Status
from agents.steps import presence
from assistant.lab.model_server import Asked, Said, serving
from assistant.lab.scripted_replies import sensible
from assistant.local.processes import Child, end, python
from assistant.local.shared_servers import state_folder
from assistant.management.commands.workers import processes

EVERY_SECONDS = 2.0


@dataclass
class Peak:
    """The most that was seen."""

    megabytes: float = 0.0
    connections: int = 0


@contextmanager
def watched(roots: Callable[[], list[int]]) -> Iterator[Peak]:
    """Look at the processes `roots` and all they started, every few seconds of the block."""
    peak, ending = Peak(), threading.Event()

    def look() -> None:
        while True:
            peak.megabytes = max(peak.megabytes, megabytes(descendants(roots())))
            peak.connections = max(peak.connections, connections())
            if ending.wait(EVERY_SECONDS):
                connection.close()
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ending.set()
        watcher.join()


def connections() -> int:
    """Return how many clients PostgreSQL serves, this one among them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type='client backend'")
        return int(cursor.fetchone()[0])


def descendants(roots: list[int]) -> set[int]:
    """Return these processes and all that they started (Linux)."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
    found, more = set[int](), set(roots)
    while more:
        found |= more
        more = {pid for pid, parent in parents.items() if parent in more} - found
    return found


def megabytes(processes: set[int]) -> float:
    """Return the memory they hold together; what several share is counted once (PSS)."""
    return sum(map(_kilobytes, processes)) / 1024


def _kilobytes(process: int) -> int:
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


COLLECTION = "inflight"
HEATER = """# The heater

## Descaling

The heater is descaled with a spoon of citric acid. Let the acid work for ten minutes, then rinse
the tank twice. Descale the heater every eight weeks.

## Warming up

The heater warms up in ninety seconds. A blue lamp shows that the water is hot.
"""
GRINDER = """# The grinder

## Cleaning

The grinder is cleaned with a dry brush, never with water. Clean it once a week.
"""
PAGES = (HEATER, GRINDER)
QUESTION = "How often do I have to descale the heater of machine {}?"
LOOK_SECONDS = 0.5
# A role that waits for models has as many threads as steps at once; the others only compute.
THINKING = [role for role in Role if KIND[role] == "LLM"]


@dataclass(frozen=True)
class Plan:
    """So many turns at once, seconds per call, and so many steps of each role in each copy."""

    turns: int
    latency: float
    concurrency: int
    copies: int = 1  # processes of agents
    patience: float = 600.0

    def environment(self, base_url: str) -> dict[str, str]:
        """Return what the workers are started with."""
        caches = ("MODEL", "TRANSLATION", "QUALITY", "SEARCH")
        return {
            "GEN_MODEL": "fake@scripted",
            "ENRICHMENT_MODEL": "none",
            "SCRIPTED_BASE_URL": base_url,
            "ROUTES": f"{Route.DOCUMENTATION},{Route.FALLBACK}",
            "TURN_DEADLINE_SECONDS": str(int(self.patience)),
            **{f"CACHE_{name}_SECONDS": "0" for name in caches},
            **{role.concurrency_setting: str(self.concurrency) for role in THINKING},
        }

    def ideal(self, stages: int) -> float:
        """Return the seconds that nobody could do without."""
        at_once = self.concurrency * self.copies
        return self.latency * (stages - 1 + math.ceil(self.turns / at_once))


def serve(latency: float) -> None:
    """Be the model server: tell its address, then on every line of input what it was asked."""

    def reply(asked: Asked) -> Said:
        said = sensible(asked)
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        return Said(text, seconds=latency)

    with serving(reply) as server:
        _print(server.base_url)
        for _ in sys.stdin:
            _print(json.dumps(Counter(server.prompts())))
            server.ledger.clear()


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(
    plan: Plan,
    asked: Callable[[], dict[str, int]],
    processes: Callable[[], list[int]],
    tell: Callable[[str], Any],
) -> dict[str, Any]:
    """Return the figures. `asked` tells and forgets the calls, `processes` are what is weighed."""
    tell("one turn alone")
    alone = _turns(1, plan)
    _turns(2, plan)
    asked()
    with watched(processes) as peak:
        tell(f"{plan.turns} turns at once")
        begin = time.perf_counter()
        turns = _turns(plan.turns, plan)
        seconds = time.perf_counter() - begin
    stages = _stages(alone[0])
    calls, ideal = asked(), plan.ideal(stages)
    took = sorted((turn.update_ts - turn.create_ts).total_seconds() for turn in turns)
    return {
        "turns": plan.turns,
        "latency": plan.latency,
        "concurrency": plan.concurrency * plan.copies,
        "copies": plan.copies,
        "cores": os.cpu_count(),
        "stages": stages,
        "seconds": round(seconds, 2),
        "ideal_seconds": round(ideal, 2),
        "ratio": round(seconds / ideal, 2),
        "alone_seconds": round((alone[0].update_ts - alone[0].create_ts).total_seconds(), 2),
        "p50_seconds": round(took[len(took) // 2], 2),
        "p95_seconds": round(took[len(took) * 95 // 100], 2),
        "megabytes": round(peak.megabytes),
        "connections": peak.connections,
        "lost": sum(turn.status != Status.COMPLETED for turn in turns),
        "by_mode": dict(Counter(turn.payload.get("mode", "") for turn in turns)),
        "calls_made": sum(calls.values()),
        "calls_meant": _by_models(turns).count(),
        "calls": calls,
    }


def _turns(count: int, plan: Plan) -> list[Envelope]:
    """Begin so many turns and return them when all have ended, or patience has."""
    settings.TURN_DEADLINE_SECONDS = plan.patience
    begun = [
        envelopes.start(
            {
                "text": QUESTION.format(uuid.uuid4().hex[:6]),
                "collections": [COLLECTION],
                "owner": "bench",
            },
            conversation_id=uuid.uuid4(),
            message_id=uuid.uuid4(),
        ).pk
        for _ in range(count)
    ]
    turns = Envelope.objects.filter(pk__in=begun)
    until = time.monotonic() + plan.patience
    while turns.filter(status=Status.RUNNING).exists() and time.monotonic() < until:
        connection.close()
        time.sleep(LOOK_SECONDS)
    return list(turns)


def _by_models(turns: list[Envelope]) -> Any:
    done = Step.objects.filter(envelope__in=turns, status=Step.Status.DONE)
    return done.filter(mode="model")


def _stages(turn: Envelope) -> int:
    """Return how many times a turn waits for models, one after another."""
    return int(_by_models([turn]).values("batch").distinct().count())


START_SECONDS = 120.0
# Who is weighed beside the workers and the web process, by the files that hold their numbers.
SERVERS = ("postgres", "redis")


def measure(plan: Plan, console: Console) -> dict[str, Any]:
    """Return the figures of a flight. Raises TimeoutError when the workers don't come up."""
    with console.status("starting everything") as status, _models(plan) as models:
        os.environ.update(plan.environment(_line(models)))
        _ingest()
        with _everything(plan, console) as children:
            return run(
                plan,
                lambda: dict(json.loads(_line(models, ask=True))),
                lambda: _numbers(children),
                status.update,
            )


@contextmanager
def _models(plan: Plan) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(  # noqa: S603 our own command line
        python("bench", "inflight", "--serve", "--latency", str(plan.latency)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _line(process: "subprocess.Popen[str]", *, ask: bool = False) -> str:
    if process.stdin is None or process.stdout is None:
        raise ValueError("The model server has no pipes.")
    if ask:
        process.stdin.write("\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def _ingest() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(PAGES):
            Path(folder, f"{number}.md").write_text(page, encoding="utf-8")
        # In a process of its own: one that holds the embedding model is not fit to be forked.
        subprocess.run(  # noqa: S603 our own command line
            python("ingest", folder, "--collection", COLLECTION),
            check=True,
            capture_output=True,
        )


@contextmanager
def _everything(plan: Plan, console: Console) -> Iterator[list[Child]]:
    web = {"web": python("serve", "--port", str(_free_port()))}
    children = [
        Child(name, line, "cyan")
        for name, line in (processes([], copies=plan.copies) | web).items()
    ]
    for child in children:
        child.begin(console)
    try:
        until = time.monotonic() + START_SECONDS
        while presence.missing_roles():
            if time.monotonic() > until:
                raise TimeoutError("The workers of the bench did not start.")
            time.sleep(0.2)
        yield children
    finally:
        end(child.process for child in children if child.process)


def _numbers(children: list[Child]) -> list[int]:
    written = [Path(state_folder()) / f"{name}.pid" for name in SERVERS]
    servers = [int(path.read_text()) for path in written if path.exists()]
    return servers + [child.process.pid for child in children if child.process]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
