"""Hops: what durability costs, a turn of ten agents that do nothing against bare Celery hops."""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from celery import Celery, current_app
from django.conf import settings

from agents import envelopes
from agents.contract import REGISTRY, View, Writes
from agents.names import Role, Route
from agents.steps import events
from agents.steps.concurrency import queue
from assistant.lab import rival

HOPS = 21
QUEUES = ("bench.one", "bench.other")
DONE = "bench:done:"
THREADS = 8
PATIENCE_SECONDS = 120.0

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


@app.task(name="bench.hop")
def hop(run: str, left: int) -> None:
    """Send the next hop to the other process, or say that this was the last."""
    if left:
        _send(run, left - 1)
    else:
        events.connection().rpush(DONE + run, 1)


def _send(run: str, left: int) -> None:
    app.send_task("bench.hop", args=[run, left], queue=QUEUES[left % 2])


def prepare_bare() -> None:
    """Use the broker of this process."""
    app.conf.update(broker_url=current_app.conf.broker_url)


def consume(name: str) -> None:
    """Do the hops of one queue until told to stop."""
    app.worker_main(
        [
            "--quiet",
            "worker",
            f"--queues={name}",
            "--pool=threads",
            f"--concurrency={THREADS}",
            f"--hostname={name}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
            "--loglevel=warning",
        ]
    )


def run(count: int) -> float:
    """Run `count` chains at once; return the seconds until all have ended."""
    name = uuid.uuid4().hex
    begin = time.perf_counter()
    for _ in range(count):
        _send(name, HOPS - 1)
    for _ in range(count):
        _await_end(name)
    return time.perf_counter() - begin


def _await_end(name: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while events.connection().blpop([DONE + name], timeout=5) is None:
        if time.monotonic() > until:
            raise TimeoutError("a chain of bare hops did not end")


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


def prepare() -> None:
    """Set this process up for the bench: two routes, one after another, agents that do nothing."""
    settings.PARALLEL_INTAKE = False
    settings.ROUTES = [Route.DOCUMENTATION.value, Route.FALLBACK.value]
    for role, writes in NOTHING.items():
        REGISTRY[role] = replace(REGISTRY[role], work=_writer(writes), model_work=None)
    prepare_bare()


def _writer(writes: Writes) -> Callable[[View], Writes]:
    return lambda _: writes


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


def measure(
    progress: Callable[[str], Any],
    *,
    rounds: int = 30,
    at_once: int = 100,
    langgraph_python: str = "",
) -> dict[str, Any]:
    """Return the figures: medians of `rounds` single turns, and of three crowds.

    Both kinds take turns, so that noise of the machine hits them alike. `langgraph_python` is a
    Python that has langgraph-checkpoint-postgres. Raises NotComparable.
    """
    durable(3), run(3)
    idle, bare_idle, loaded, bare_loaded = [], [], [], []
    for number in range(rounds):
        progress(f"one at a time: {number + 1} of {rounds}")
        idle.append(durable(1))
        bare_idle.append(run(1))
    for number in range(3):
        progress(f"{at_once} at once: {number + 1} of 3")
        loaded.append(durable(at_once))
        bare_loaded.append(run(at_once))
    figures = _figures(idle, bare_idle, loaded, bare_loaded, at_once)
    if langgraph_python:
        progress("LangGraph")
        theirs = rival.langgraph(langgraph_python, rounds=rounds, at_once=at_once)
        ours = figures["loaded"]["turns_per_s"]
        ratio = round(ours / theirs["turns_per_s"], 2)
        figures["langgraph"] = theirs | {"docent_times_its_turns_per_s": ratio}
    return figures


def _figures(
    idle: list[float],
    bare_idle: list[float],
    loaded: list[float],
    bare_loaded: list[float],
    at_once: int,
) -> dict[str, Any]:
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
