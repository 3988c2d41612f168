"""In flight: many turns at once against a model server that takes its time, by real workers.

The ideal is what the turns would take if nothing but the models' time counted: with N turns, C
steps of each role at once and a turn of S stages that ask a model one after another, each of them
L seconds, the first C turns take S·L and every further C of them L more.
"""

import json
import math
import os
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from agents import envelopes
from agents.bench import footprint
from agents.bench.modelserver import Asked, Said, serving
from agents.bench.replies import sensible
from agents.models import Envelope, Step
from agents.names import KIND, Role, Route, Status

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
    with footprint.watched(processes) as peak:
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
