"""Hops: what durability costs, a turn of ten agents that do nothing against bare Celery hops.

Both run in two worker processes, a turn in one for the manager and one for the agents, as `up`
starts them. It is 21 hops: the manager is asked eleven times.
"""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents import envelopes, events
from agents.bench import bare, beside
from agents.contract import REGISTRY, View, Writes
from agents.names import Role, Route

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
        REGISTRY[role] = replace(REGISTRY[role], work=_writer(writes), thought=None)
    bare.prepare()


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
        for event in events.follow(turn.result_list, seconds=bare.PATIENCE_SECONDS):
            if event:
                break
        else:
            raise TimeoutError(f"turn {turn.pk} did not end")
    seconds = time.perf_counter() - begin
    for turn in turns:
        turn.refresh_from_db()
        if turn.process_count != bare.HOPS:
            raise ValueError(f"turn {turn.pk} took {turn.process_count} hops, not {bare.HOPS}")
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
    durable(3), bare.run(3)
    idle, bare_idle, loaded, bare_loaded = [], [], [], []
    for number in range(rounds):
        progress(f"one at a time: {number + 1} of {rounds}")
        idle.append(durable(1))
        bare_idle.append(bare.run(1))
    for number in range(3):
        progress(f"{at_once} at once: {number + 1} of 3")
        loaded.append(durable(at_once))
        bare_loaded.append(bare.run(at_once))
    figures = _figures(idle, bare_idle, loaded, bare_loaded, at_once)
    if langgraph_python:
        progress("LangGraph")
        theirs = beside.langgraph(langgraph_python, rounds=rounds, at_once=at_once)
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
