"""Hops bench: what durability costs, a turn of ten idle agents against bare Celery hops."""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from celery import Celery, current_app
from django.conf import settings
from rich.table import Table

from agents import envelopes
from agents.contract import REGISTRY, View, Writes
from agents.names import Role, Route
from agents.steps import events
from agents.steps.concurrency import queue
from assistant.lab import rival
from assistant.lab.rehearsal import working
from assistant.local.processes import python
from assistant.management.commands import workers

HOPS = 21
QUEUES = ("bench.one", "bench.other")
WORKERS = ("manager", "agents", *QUEUES)
DONE = "bench:done:"
THREADS = 8
CROWDS = 3
PATIENCE_SECONDS = 120.0
# The least each agent must write for the routing table to send the turn through all ten.
NOTHING: dict[Role, Writes] = {
    Role.LANG: {"language": "en", "confidence": 1.0},
    Role.TRANSLATION: {"text_eng": "?"},
    Role.ESSENCE: {"canonical_question": "?"},
    Role.GUARDRAILS: {"guardrails_passed": True},
    Role.ROUTER: {"route": Route.DOCUMENTATION},
    Role.SEARCH: {"search_quality": "good"},
    Role.EVALUATOR: {"evaluation": {"sufficient": True, "confidence": 1.0}},
    Role.AUGMENTATION: {"augmented_prompt": "?"},
    Role.RESPONSE: {"response": "!"},
    Role.QUALITY: {"quality_decision": "approve", "quality_score": 1.0},
}

app = Celery("bare", set_as_current=False)
app.conf.update(
    task_queues=[queue(name) for name in QUEUES],
    task_default_queue=QUEUES[0],
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"priority_steps": [0]},
)


def prepare() -> None:
    """Set this process up for the bench: two routes, one after another, agents that do nothing."""
    settings.PARALLEL_INTAKE = False
    settings.ROUTES = [Route.DOCUMENTATION.value, Route.FALLBACK.value]
    for role, writes in NOTHING.items():
        REGISTRY[role] = replace(REGISTRY[role], work=_writer(writes), model_work=None)
    app.conf.update(broker_url=current_app.conf.broker_url)


def _writer(writes: Writes) -> Callable[[View], Writes]:
    return lambda _: writes


def consume(name: str) -> None:
    """Be the worker of this name until told to stop."""
    if name in QUEUES:
        _consume_bare(name)
    else:
        workers.consume([role for role in Role if (role is Role.MANAGER) == (name == "manager")])


def _consume_bare(queue_name: str) -> None:
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={queue_name}",
            "--pool=threads",
            f"--concurrency={THREADS}",
            f"--hostname={queue_name}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=warning",
        ]
    )


def measure(
    progress: Callable[[str], Any],
    *,
    rounds: int = 30,
    at_once: int = 100,
    langgraph_python: str = "",
) -> dict[str, Any]:
    """Return the figures: medians of `rounds` single turns, and of three crowds.

    Both kinds take turns, so that noise of the machine hits them alike. `langgraph_python` is a
    Python that has langgraph-checkpoint-postgres. Raises NotComparable and NoWorkers.
    """
    progress("starting the workers")
    with working({name: python("bench", "hops", "--worker", name) for name in WORKERS}):
        figures = _measure(progress, rounds, at_once)
        if langgraph_python:
            progress("LangGraph")
            theirs = rival.langgraph(langgraph_python, rounds=rounds, at_once=at_once)
            ratio = round(figures["loaded"]["turns_per_s"] / theirs["turns_per_s"], 2)
            figures["langgraph"] = theirs | {"docent_times_its_turns_per_s": ratio}
    return figures


def _measure(progress: Callable[[str], Any], rounds: int, at_once: int) -> dict[str, Any]:
    durable(3), bare(3)
    idle, bare_idle, loaded, bare_loaded = [], [], [], []
    for number in range(rounds):
        progress(f"one at a time: {number + 1} of {rounds}")
        idle.append(durable(1))
        bare_idle.append(bare(1))
    for number in range(CROWDS):
        progress(f"{at_once} at once: {number + 1} of {CROWDS}")
        loaded.append(durable(at_once))
        bare_loaded.append(bare(at_once))
    one, bare_one = statistics.median(idle), statistics.median(bare_idle)
    crowd, bare_crowd = statistics.median(loaded), statistics.median(bare_loaded)
    return {
        "idle": {
            "ms": round(one * 1000, 2),
            "bare_ms": round(bare_one * 1000, 2),
            "ratio": round(one / bare_one, 2),
        },
        "loaded": {
            "turns_per_s": round(at_once / crowd, 2),
            "bare_turns_per_s": round(at_once / bare_crowd, 2),
            "ratio": round(crowd / bare_crowd, 2),
        },
    }


def durable(count: int) -> float:
    """Run `count` turns at once; return the seconds until all have ended."""
    begin = time.perf_counter()
    turns = [
        envelopes.start({"text": "?"}, conversation_id=uuid.uuid4(), message_id=uuid.uuid4())
        for _ in range(count)
    ]
    for turn in turns:
        for event in events.follow(turn.result_list, seconds=PATIENCE_SECONDS):
            if event:
                break
        else:
            raise TimeoutError(f"turn {turn.pk} did not end")
    seconds = time.perf_counter() - begin
    for turn in turns:
        turn.refresh_from_db()
        if turn.process_count != HOPS:
            raise ValueError(f"turn {turn.pk} took {turn.process_count} hops, not {HOPS}")
    return seconds


def bare(count: int) -> float:
    """Run `count` chains of bare hops at once; return the seconds until all have ended."""
    name = uuid.uuid4().hex
    begin = time.perf_counter()
    for _ in range(count):
        _send(name, HOPS - 1)
    for _ in range(count):
        _await_end(name)
    return time.perf_counter() - begin


@app.task(name="bench.hop")
def hop(run: str, left: int) -> None:
    """Send the next hop to the other process, or say that this was the last."""
    if left:
        _send(run, left - 1)
    else:
        events.connection().rpush(DONE + run, 1)


def _send(run: str, left: int) -> None:
    app.send_task("bench.hop", args=[run, left], queue=QUEUES[left % 2])


def _await_end(run: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while events.connection().blpop([DONE + run], timeout=5) is None:
        if time.monotonic() > deadline:
            raise TimeoutError("a chain of bare hops did not end")


def table(figures: dict[str, Any], at_once: int) -> Table:
    """Return what durability costs."""
    idle, loaded = figures["idle"], figures["loaded"]
    rows = Table("", "durable turn", "bare hops", "ratio", title=f"{HOPS} hops, ten agents")
    rows.add_row("one turn", f"{idle['ms']} ms", f"{idle['bare_ms']} ms", f"{idle['ratio']}")
    rows.add_row(
        f"{at_once} at once",
        f"{loaded['turns_per_s']} turns/s",
        f"{loaded['bare_turns_per_s']} turns/s",
        f"{loaded['ratio']}",
    )
    if theirs := figures.get("langgraph"):
        rows.add_section()
        rows.add_row("LangGraph, ten nodes, one turn", f"{theirs['ms']} ms", "", "")
        times = f"Docent does {theirs['docent_times_its_turns_per_s']} times as many"
        rows.add_row("LangGraph, many", f"{theirs['turns_per_s']} turns/s", "", times)
    return rows
