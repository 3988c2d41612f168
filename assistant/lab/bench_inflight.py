"""In flight bench: many turns at once, by real workers, against a model server with latency."""

import json
import math
import os
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
from rich.table import Table

from agents import envelopes
from agents.models import Envelope, Step
from agents.names import KIND, Role, Route, Status
from assistant.lab.model_server import serving
from assistant.lab.rehearsal import WITHOUT_CACHES, free_port, working
from assistant.lab.scripted_replies import Sensible
from assistant.local.paths import state_folder
from assistant.local.processes import Child, python
from assistant.local.servers import POSTGRES, REDIS
from assistant.management.commands.workers import processes

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
WEIGH_SECONDS = 2.0
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
        return {
            "GEN_MODEL": "fake@scripted",
            "ENRICHMENT_MODEL": "none",
            "SCRIPTED_BASE_URL": base_url,
            "ROUTES": f"{Route.DOCUMENTATION},{Route.FALLBACK}",
            "TURN_DEADLINE_SECONDS": str(int(self.patience)),
            **WITHOUT_CACHES,
            **{role.concurrency_setting: str(self.concurrency) for role in THINKING},
        }

    def ideal(self, stages: int) -> float:
        """Return the seconds that nobody could do without."""
        at_once = self.concurrency * self.copies
        return self.latency * (stages - 1 + math.ceil(self.turns / at_once))


def measure(plan: Plan, progress: Callable[[str], Any]) -> dict[str, Any]:
    """Return the figures of a flight, with everything started for it. Raises NoWorkers."""
    progress("starting everything")
    web = {"web": python("serve", "--port", str(free_port()))}
    with _model_process(plan) as models:
        os.environ.update(plan.environment(_line(models)))
        take_in()
        with working(processes([], copies=plan.copies) | web) as children:
            return fly(plan, models, children, progress)


def fly(
    plan: Plan,
    models: "subprocess.Popen[str]",
    children: list[Child],
    progress: Callable[[str], Any],
) -> dict[str, Any]:
    """Return the figures; the processes `children`, and all they started, are weighed."""
    progress("one turn alone")
    (alone,) = _turns(1, plan)
    _turns(2, plan)
    _calls(models)
    with weighed(lambda: _process_ids(children)) as peak:
        progress(f"{plan.turns} turns at once")
        begin = time.perf_counter()
        turns = _turns(plan.turns, plan)
        seconds = time.perf_counter() - begin
    stages = _stages(alone)
    calls, ideal = _calls(models), plan.ideal(stages)
    durations = sorted(map(_duration, turns))
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
        "alone_seconds": round(_duration(alone), 2),
        "p50_seconds": round(durations[len(durations) // 2], 2),
        "p95_seconds": round(durations[len(durations) * 95 // 100], 2),
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
    ids = [
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
    turns = Envelope.objects.filter(pk__in=ids)
    deadline = time.monotonic() + plan.patience
    while turns.filter(status=Status.RUNNING).exists() and time.monotonic() < deadline:
        connection.close()
        time.sleep(LOOK_SECONDS)
    return list(turns)


def _duration(turn: Envelope) -> float:
    return (turn.update_ts - turn.create_ts).total_seconds()


def _by_models(turns: list[Envelope]) -> Any:
    done = Step.objects.filter(envelope__in=turns, status=Step.Status.DONE)
    return done.filter(mode="model")


def _stages(turn: Envelope) -> int:
    """Return how many times a turn waits for models, one after another."""
    return int(_by_models([turn]).values("batch").distinct().count())


def take_in() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(PAGES):
            Path(folder, f"{number}.md").write_text(page, encoding="utf-8")
        # In a process of its own: one that holds the embedding model is not fit to be forked.
        subprocess.run(  # noqa: S603 our own command line
            python("ingest", folder, "--collection", COLLECTION),
            check=True,
            capture_output=True,
        )


def serve(latency: float) -> None:
    """Be the model server: print its address, then for every line of input the calls since."""
    with serving(Sensible(latency).reply) as server:
        _print(server.base_url)
        for _ in sys.stdin:
            _print(json.dumps(Counter(server.prompts())))
            server.ledger.clear()


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def _model_process(plan: Plan) -> "Iterator[subprocess.Popen[str]]":
    """Run the model server in a process of its own, so that it takes no time of this one."""
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


def _calls(models: "subprocess.Popen[str]") -> dict[str, int]:
    """Return the calls since the last time, by prompt."""
    if models.stdin is None:
        raise ValueError("The model server has no pipes.")
    models.stdin.write("\n")
    models.stdin.flush()
    return dict(json.loads(_line(models)))


def _line(models: "subprocess.Popen[str]") -> str:
    if models.stdout is None:
        raise ValueError("The model server has no pipes.")
    return models.stdout.readline().strip()


@dataclass
class Peak:
    """The most that was seen."""

    megabytes: float = 0.0
    connections: int = 0


@contextmanager
def weighed(roots: Callable[[], list[int]]) -> Iterator[Peak]:
    """Look at the processes `roots` and all they started, every few seconds of the block."""
    peak, ending = Peak(), threading.Event()

    def look() -> None:
        while True:
            peak.megabytes = max(peak.megabytes, megabytes(descendants(roots())))
            peak.connections = max(peak.connections, connections())
            if ending.wait(WEIGH_SECONDS):
                connection.close()
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ending.set()
        watcher.join()


def _process_ids(children: list[Child]) -> list[int]:
    """Return the processes of the embedded servers and of the children."""
    files = [state_folder() / f"{name}.pid" for name in (POSTGRES, REDIS)]
    servers = [int(path.read_text()) for path in files if path.exists()]
    return servers + [child.process.pid for child in children if child.process]


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
    family, generation = set[int](), set(roots)
    while generation:
        family |= generation
        generation = {pid for pid, parent in parents.items() if parent in generation} - family
    return family


def megabytes(processes: set[int]) -> float:
    """Return the memory they hold together; what several share is counted once (PSS)."""
    return sum(map(_kilobytes, processes)) / 1024


def _kilobytes(process: int) -> int:
    try:
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


def table(figures: dict[str, Any]) -> Table:
    """Return how many turns at once fared, against the time their models took."""
    title = f"{figures['turns']} turns at once, {figures['latency']} s a call"
    lines = {
        "steps of a role at once": f"{figures['concurrency']} in {figures['copies']} processes",
        "all turns": f"{figures['seconds']} s, {figures['ratio']} times the ideal",
        "a turn alone": f"{figures['alone_seconds']} s, {figures['stages']} calls in a row",
        "half of the turns": f"{figures['p50_seconds']} s",
        "19 of 20 turns": f"{figures['p95_seconds']} s",
        "memory of everything": f"{figures['megabytes']} MB",
        "connections to PostgreSQL": figures["connections"],
        "lost turns": figures["lost"],
        "calls": f"{figures['calls_made']} made, {figures['calls_meant']} meant",
    }
    rows = Table("", "", title=title)
    for name, value in lines.items():
        rows.add_row(name, str(value))
    return rows
