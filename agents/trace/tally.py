"""Tally: what is counted of turns that have ended, once, however many processes there are.

A turn is counted by the sweeper soon after it has ended, and before it is forgotten. Prometheus
takes a figure that grew smaller for one that began anew: so figures are kept, and not read from
turns, which users may have deleted.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils.timezone import now
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric

from agents.llm.outcomes import Outcome
from agents.models import Envelope, ModelCall, Step, Tally, ToolRun
from agents.names import Role, Status
from agents.tools.tool import TOOLS
from agents.trace.tool_use import UNKNOWN
from agents.trace.usage import FREE

# Turns and calls that are counted at a time.
MOST = 500
# So long after its reply a call may still turn out to be of no use.
SETTLED = timedelta(seconds=30)
# Seconds: rules take milliseconds, models seconds, and a turn two minutes at the most, as set.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
CACHED = "cached"
ADD = """
INSERT INTO agents_tally AS tally (metric, labels, total, buckets)
SELECT metric, labels, total, buckets
  FROM jsonb_to_recordset(%s::jsonb)
       AS added(metric text, labels text[], total float8, buckets bigint[])
 ORDER BY metric, labels
ON CONFLICT (metric, labels) DO UPDATE
   SET total = tally.total + excluded.total,
       buckets = ARRAY(SELECT coalesce(before, 0) + coalesce(more, 0)
                         FROM unnest(tally.buckets, excluded.buckets)
                              WITH ORDINALITY AS bucket(before, more, place)
                        ORDER BY place)"""


@dataclass(frozen=True)
class Measure:
    """A counter, or with bounds a histogram. To change its labels or bounds, give it a new name."""

    name: str
    about: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...] = ()


MEASURES: dict[str, Measure] = {}


def _measure(name: str, about: str, *labels: str, bounds: tuple[float, ...] = ()) -> Measure:
    return MEASURES.setdefault(name, Measure(name, about, labels, bounds))


OF_A_MODEL = ("role", "model", "provider")
TURNS = _measure(
    "docent_turns_ended", "Turns that have ended.", "status", "route", "mode", "decision"
)
TURN_SECONDS = _measure(
    "docent_turn_seconds", "From message to end of a turn.", "status", "route", bounds=BOUNDS
)
STEPS = _measure("docent_steps_ended", "Steps of ended turns.", "role", "status", "mode")
RETRIES = _measure("docent_step_retries", "Attempts at steps after the first.", "role")
DEGRADED = _measure("docent_steps_degraded", "Steps done without the model that is set.", "role")
WAIT = _measure("docent_step_wait_seconds", "Waiting in the queue.", "role", bounds=BOUNDS)
RUN = _measure("docent_step_run_seconds", "Time at work.", "role", bounds=BOUNDS)
CALLS = _measure("docent_model_calls", "Calls of models.", *OF_A_MODEL, "outcome")
TOKENS = _measure("docent_model_tokens", "Tokens, as providers count.", *OF_A_MODEL, "direction")
COST = _measure("docent_model_cost_dollars", "What calls cost, in US dollars.", *OF_A_MODEL)
UNPRICED = _measure("docent_model_calls_unpriced", "Calls whose price is not known.", *OF_A_MODEL)
FAILED = _measure(
    "docent_model_attempts_failed", "Attempts before the last of a call.", *OF_A_MODEL, "outcome"
)
CALL_SECONDS = _measure(
    "docent_model_seconds", "Until a reply was there.", *OF_A_MODEL, bounds=BOUNDS
)
FIRST_TOKEN = _measure(
    "docent_model_first_token_seconds", "Until a reply began.", *OF_A_MODEL, bounds=BOUNDS
)
SEARCHES = _measure("docent_searches", "Searches of turns, by what they found.", "quality")
CITATIONS = _measure("docent_citations", "Citations of answers, as checked.", "status")
TOOLS_CALLED = _measure("docent_tool_calls", "Calls of tools.", "tool", "outcome")


@dataclass
class Sums:
    """What is to be added, by metric and labels."""

    rows: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = field(default_factory=dict)

    def add(self, measure: Measure, *labels: Any, by: float = 1) -> None:
        """Count."""
        self._row(measure, labels)["total"] += by

    def observe(self, measure: Measure, *labels: Any, seconds: float | None) -> None:
        """Add to a histogram, unless it is not known."""
        if seconds is None:
            return
        # Clocks of two machines may differ by more than it took.
        value = max(0.0, seconds)
        row = self._row(measure, labels)
        row["total"] += value
        row["buckets"][sum(value > bound for bound in measure.bounds)] += 1

    def store(self) -> None:
        """Add it to what is kept; within the transaction that says what was counted."""
        if self.rows:
            with connection.cursor() as cursor:
                cursor.execute(ADD, [json.dumps([*self.rows.values()])])

    def _row(self, measure: Measure, labels: tuple[Any, ...]) -> dict[str, Any]:
        names = tuple(str(label or "")[:200] for label in labels)
        if (row := self.rows.get((measure.name, names))) is None:
            buckets = [0] * (len(measure.bounds) + 1) if measure.bounds else []
            row = {"metric": measure.name, "labels": names, "total": 0.0, "buckets": buckets}
            self.rows[measure.name, names] = row
        return row


@transaction.atomic
def count_ended(turns: Iterable[uuid.UUID] | None = None) -> list[uuid.UUID]:
    """Count what has ended and was not counted, or these turns alone; return the turns' ids.

    What somebody else is counting, or about to delete, is left to them.
    """
    chosen = None if turns is None else list(turns)
    sums = Sums()
    ended = _count_turns(sums, chosen)
    _count_steps(sums, ended)
    _count_calls(sums, ended, alone=chosen is not None)
    _count_tools(sums, ended)
    sums.store()
    return ended


def _count_turns(sums: Sums, chosen: list[uuid.UUID] | None) -> list[uuid.UUID]:
    uncounted = Envelope.objects.filter(counted=False).exclude(status=Status.RUNNING)
    if chosen is not None:
        uncounted = uncounted.filter(pk__in=chosen)
    rows = list(
        uncounted.select_for_update(skip_locked=True)
        .order_by("create_ts")
        .values_list(
            "pk",
            "status",
            "payload__route",
            "payload__mode",
            "payload__quality_decision",
            "payload__citations_used",
            F("update_ts") - F("create_ts"),
        )[:MOST]
    )
    for _, status, route, mode, decision, citations, took in rows:
        sums.add(TURNS, status, route, mode, decision)
        sums.observe(TURN_SECONDS, status, route, seconds=took.total_seconds())
        for citation in citations or ():
            sums.add(CITATIONS, citation["citation_status"])
    ended = [row[0] for row in rows]
    Envelope.objects.filter(pk__in=ended).update(counted=True)
    return ended


def _count_steps(sums: Sums, ended: list[uuid.UUID]) -> None:
    steps = Step.objects.filter(envelope__in=ended).order_by()
    for step in steps.defer("output"):
        sums.add(STEPS, step.role, step.status, step.mode)
        if step.attempt > 1:
            sums.add(RETRIES, step.role, by=step.attempt - 1)
        if step.degraded:
            sums.add(DEGRADED, step.role)
        if step.status in {Step.Status.DONE, Step.Status.QUARANTINED}:
            sums.observe(WAIT, step.role, seconds=step.wait_seconds)
            sums.observe(RUN, step.role, seconds=step.run_seconds)
    searches = steps.filter(role=Role.SEARCH, status=Step.Status.DONE)
    for quality in searches.values_list("output__search_quality", flat=True):
        sums.add(SEARCHES, quality)


def _count_calls(sums: Sums, ended: list[uuid.UUID], *, alone: bool) -> None:
    """Count the calls of the turns, and unless they are `alone` those that ended outside of any."""
    rows = list(
        _calls(ended, alone=alone)
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("created")
        .defer("request", "reply", "tool_calls")[: None if alone else 10 * MOST]
    )
    for call in rows:
        _count_call(sums, call)
    ModelCall.objects.filter(pk__in=[call.pk for call in rows]).update(counted=True)


def _calls(ended: list[uuid.UUID], *, alone: bool) -> QuerySet[ModelCall]:
    calls = ModelCall.objects.filter(counted=False).exclude(outcome=Outcome.SENT)
    of_turns = Q(envelope__in=ended)
    elsewhere = Q(envelope=None) | Q(envelope__counted=True)
    settled = Q(created__lt=now() - SETTLED)
    return calls.filter(of_turns if alone else of_turns | elsewhere & settled)


def _count_call(sums: Sums, call: ModelCall) -> None:
    labels = (call.role, call.model.removesuffix(f"@{call.provider}"), call.provider)
    if call.cached_from_id is not None:
        sums.add(CALLS, *labels, CACHED)
        return
    sums.add(CALLS, *labels, call.outcome)
    for direction in ("input", "output", "cached"):
        if tokens := getattr(call, f"{direction}_tokens"):
            sums.add(TOKENS, *labels, direction, by=tokens)
    if call.cost is not None:
        sums.add(COST, *labels, by=float(call.cost))
    elif call.outcome not in FREE:
        sums.add(UNPRICED, *labels)
    for attempt in call.attempts:
        sums.add(FAILED, *labels, attempt["outcome"])
    if call.outcome == Outcome.OK:
        sums.observe(CALL_SECONDS, *labels, seconds=call.seconds)
        sums.observe(FIRST_TOKEN, *labels, seconds=call.first_token_seconds)


def _count_tools(sums: Sums, ended: list[uuid.UUID]) -> None:
    runs = ToolRun.objects.filter(envelope__in=ended).order_by()
    for tool, outcome in runs.values_list("tool", "outcome"):
        sums.add(TOOLS_CALLED, tool if tool in TOOLS else UNKNOWN, outcome)


def families() -> Iterator[Metric]:
    """Yield everything that is kept, as Prometheus is shown it."""
    rows: dict[str, list[Tally]] = {name: [] for name in MEASURES}
    for row in Tally.objects.filter(metric__in=MEASURES):
        rows[row.metric].append(row)
    for name, measure in MEASURES.items():
        yield _histogram(measure, rows[name]) if measure.bounds else _counter(measure, rows[name])


def _counter(measure: Measure, rows: list[Tally]) -> Metric:
    family = CounterMetricFamily(measure.name, measure.about, labels=measure.labels)
    for row in rows:
        family.add_metric(row.labels, row.total)
    return family


def _histogram(measure: Measure, rows: list[Tally]) -> Metric:
    family = HistogramMetricFamily(measure.name, measure.about, labels=measure.labels)
    names = [*map(str, measure.bounds), "+Inf"]
    for row in rows:
        up_to = [sum(row.buckets[: place + 1]) for place in range(len(names))]
        family.add_metric(row.labels, list(zip(names, up_to, strict=True)), row.total)
    return family
