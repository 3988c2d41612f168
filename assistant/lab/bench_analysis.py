"""Analysis bench: whether specialists of one step of a plan take longer than the slowest of them.

Real workers and real searches; a model server takes the same time for every call. A specialist
calls its tools in one reply and answers in the next.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from django.core.management import call_command
from rich.table import Table

from agents.models import Envelope, ModelCall, Step
from agents.names import SPECIALISTS, Role
from assistant.lab import scripted_analysis
from assistant.lab.bench_answer import ask
from assistant.lab.model_server import Call, Response
from assistant.lab.rehearsal import rehearsing
from assistant.lab.scripted_analysis import ENGLISH, Reply
from assistant.lab.scripted_replies import sensible, text_of
from knowledge.errors import KnowledgeError

COLLECTION = "archive"
# All that need no other before them.
TOGETHER = [role.value for role in SPECIALISTS if role is not Role.COMPLIANCE]


class NotAnalysed(KnowledgeError):
    """A turn of the bench did not do what is measured."""


def measure(rounds: int, seconds: float, progress: Callable[[str], Any]) -> dict[str, Any]:
    """Return the figures of `rounds` turns whose calls take so many seconds.

    `against_slowest` is the time from when the specialists could begin until the last had ended,
    by the time that the slowest was at work; `against_calls` the same by what its calls alone took.
    Raises NotAnalysed, NoWorkers.
    """
    with TemporaryDirectory() as name, redirect_stdout(sys.stderr):
        for page, text in ENGLISH.pages().items():
            (Path(name) / page).write_text(text, encoding="utf-8")
        call_command("ingest", name, collection=COLLECTION)
    replies = scripted_analysis.replies(ENGLISH, [TOGETHER])

    def reply(call: Call) -> Response:
        return replace(_said(replies, call), seconds=seconds)

    with rehearsing(reply, routes=["documentation", "analysis"]):
        # The first turn of a worker pays for what is loaded on first use.
        turns = []
        for number in range(rounds + 1):
            progress(f"turn {number} of {rounds}")
            turns.append(ask(ENGLISH.question, COLLECTION).turn)
    figures = [_figures(turn, seconds) for turn in turns[1:]]
    return {
        "specialists": len(TOGETHER),
        "seconds": seconds,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
        **{
            each: round(median(found[each] for found in figures), 3)
            for each in ("wall", "slowest", "calls", "against_slowest", "against_calls")
        },
        "turns": figures,
    }


def _said(replies: Mapping[str, Reply], call: Call) -> Response:
    usual = sensible(call)
    said = replies[call.prompt](call) if call.prompt in replies else {}
    if isinstance(said, Response):
        return said
    return Response(text_of(usual) if isinstance(usual, str) else json.dumps(usual | said))


def _figures(turn: Envelope, seconds: float) -> dict[str, float]:
    """Return the times of the specialists of a turn, in seconds. Raises NotAnalysed."""
    steps = list(Step.objects.filter(envelope=turn, role__in=TOGETHER).order_by("number"))
    if len(steps) != len(TOGETHER) or len({step.batch for step in steps}) != 1:
        raise NotAnalysed(f"Turn {turn.pk} went {turn.status}, with {len(steps)} specialists.")
    ends = [step.ended for step in steps if step.ended]
    calls = ModelCall.objects.filter(envelope=turn)
    wall = (max(ends) - min(step.available_at for step in steps)).total_seconds()
    slowest = max(step.run_seconds or 0.0 for step in steps)
    longest = seconds * max(calls.filter(step_number=step.number).count() for step in steps)
    return {
        "wall": round(wall, 3),
        "slowest": round(slowest, 3),
        "calls": longest,
        "against_slowest": round(wall / slowest, 3),
        "against_calls": round(wall / longest, 3),
    }


def table(figures: Mapping[str, Any]) -> Table:
    """Return the times of each turn, and their medians."""
    title = f"{figures['specialists']} specialists at a time, {figures['seconds']:g} s a call"
    columns = ("wall", "slowest", "its calls", "wall / slowest", "wall / calls")
    rows = Table("", *(f"{each}" for each in columns), title=title)
    names = ("wall", "slowest", "calls", "against_slowest", "against_calls")
    for number, turn in enumerate(figures["turns"], start=1):
        rows.add_row(f"turn {number}", *(f"{turn[name]:.2f}" for name in names))
    rows.add_section()
    rows.add_row("median", *(f"{figures[name]:.2f}" for name in names))
    rows.caption = f"seconds; load {figures['load']}"
    return rows
