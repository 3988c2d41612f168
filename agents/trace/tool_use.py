"""Tool use: what tools did in a turn, and how often calls come to nothing, by tool and by role."""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from agents.models import ModelCall, ToolRun
from agents.tools.tool import TOOLS, ToolOutcome
from agents.trace.usage import Percentile

# Models make names up, one after another: together they are one tool.
UNKNOWN = "(unknown)"
OK = Q(outcome=ToolOutcome.OK)
FIGURES: dict[str, Any] = {
    "calls": Count("pk"),
    **{f"{outcome}_calls": Count("pk", filter=Q(outcome=outcome)) for outcome in ToolOutcome},
    "p50_seconds": Percentile("seconds", share=0.5, filter=OK & Q(repeats=None)),
    "p95_seconds": Percentile("seconds", share=0.95, filter=OK & Q(repeats=None)),
}


def used_tools(envelope_id: uuid.UUID) -> list[str]:
    """Return the names of the tools that did something for a turn, each once, in order."""
    done = ToolRun.objects.filter(OK, envelope=envelope_id)
    return list(dict.fromkeys(done.values_list("tool", flat=True)))


def tool_figures(since: datetime) -> list[dict[str, Any]]:
    """Return a row for each tool with calls since then, and one for all names that are none.

    A row has `name`, `calls`, the calls of each outcome (`ok_calls`, …), `failures` (all that did
    not go well), the rates of failures, of hallucinated names and of wrong arguments among the
    calls, from 0 to 1, and the median and the 95th percentile of the seconds of those that did.
    """
    runs = ToolRun.objects.filter(created__gte=since).order_by()
    known: Any = runs.filter(tool__in=TOOLS).values("tool").annotate(**FIGURES)
    rows = [_row(each.pop("tool"), each) for each in known]
    unknown = runs.exclude(tool__in=TOOLS).aggregate(**FIGURES)
    rows.sort(key=lambda row: row["name"])
    return [*rows, _row(UNKNOWN, unknown)] if unknown["calls"] else rows


def role_figures(since: datetime) -> list[dict[str, Any]]:
    """Return such a row for each role whose model or rules had tools called since then."""
    runs = ToolRun.objects.filter(created__gte=since).order_by()
    by_role: Any = runs.values("role").annotate(**FIGURES)
    rows = [_row(each.pop("role"), each) for each in by_role]
    return sorted(rows, key=lambda row: str(row["name"]))


def _row(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    calls = figures["calls"]
    failures = calls - figures["ok_calls"]
    return {
        "name": name,
        **figures,
        "failures": failures,
        "failure_rate": failures / calls,
        "hallucination_rate": figures["hallucination_calls"] / calls,
        "validation_rate": figures["validation_calls"] / calls,
    }


def runs_by_step(envelope_id: uuid.UUID) -> dict[int, list[ToolRun]]:
    """Return the rows of a turn by the number of their step, in the order of the calls."""
    by_step: dict[int, list[ToolRun]] = defaultdict(list)
    for run in ToolRun.objects.filter(envelope=envelope_id).order_by("number", "pk"):
        by_step[run.step_number].append(run)
    return by_step


def as_json(run: ToolRun, *, staff: bool) -> dict[str, Any]:
    """Return one call as JSON values; what was given and what came back for `staff` only."""
    values = {
        "number": run.number,
        "round": run.round,
        "tool": run.tool if run.tool in TOOLS or staff else UNKNOWN,
        "outcome": run.outcome,
        "gain": run.gain or None,
        "attempts": run.attempts,
        "seconds": run.seconds,
        "repeats": run.repeats_id is not None,
        "error_id": run.error_id or None,
        "ended": run.created.isoformat(),
    }
    if not staff:
        return values
    return values | {"arguments": run.arguments, "result": run.result, "error": run.error or None}


def trajectory(calls: Sequence[ModelCall], runs: Sequence[ToolRun]) -> list[dict[str, Any]]:
    """Return what a step thought, did and saw, in order; empty where no model called a tool.

    `{kind, round, …}`: a thought has `text`, an action `tool` and `arguments`, an observation
    `outcome` and `result`, whole.
    """
    steps: list[dict[str, Any]] = []
    by_call: dict[int | None, list[ToolRun]] = defaultdict(list)
    for run in runs:
        by_call[run.model_call_id].append(run)
    for call in calls if runs else ():
        of_call = by_call[call.pk]
        number = of_call[0].round if of_call else None
        if call.reply:
            steps.append({"kind": "thought", "round": number, "text": call.reply})
        for run in of_call:
            steps.append(
                {"kind": "action", "round": number, "tool": run.tool, "arguments": run.arguments}
            )
        for run in of_call:
            seen = run.result if run.outcome == ToolOutcome.OK else run.error
            steps.append(
                {"kind": "observation", "round": number, "outcome": run.outcome, "result": seen}
            )
    return steps
