"""Trace: everything that happened in a turn, step by step, rebuilt from its rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.timezone import now

from agents.contract import REGISTRY
from agents.llm.outcomes import UNHEARD, Outcome
from agents.models import Envelope, ModelCall, Step, ToolRun
from agents.names import SPECIALISTS, Role
from agents.steps.records import Payload, payloads_before
from agents.trace import tool_use
from agents.trace.usage import FREE, calls_of, dollars, usage_of_calls, usage_of_turn

PASSAGE = (
    "chunk_id", "document_id", "version", "title", "section", "source", "score", "cosine", "text",
)  # fmt: skip


# Lists of specialists that make up the checklist with its verdicts.
CHECKLIST = frozenset({"requirements", "verdicts"})


def plan(payload: Payload) -> dict[str, Any]:
    """Return what essence and router decided: what is looked for, where, and how it is answered."""
    names = (
        "canonical_question",
        "context_type",
        "wordings",
        "retrieval_k",
        "response_notes",
        "route",
        "route_confidence",
        "query_type",
    )
    return {name: payload.get(name) for name in names}


def analysis(payload: Payload) -> dict[str, Any] | None:
    """Return the plan of an analysis, and what specialists gave; None where nothing was planned."""
    names = ("agent_outputs", "shortcomings", "gravest", "analysis_target", "is_incomplete")
    planned = payload.get("analysis_plan")
    return planned and {"plan": planned, **{name: payload.get(name) for name in names}}


@dataclass(frozen=True)
class PlanStep:
    """Specialists that work at the same time, and whether they have: done, running or queued."""

    roles: list[str]
    condition: str


def plan_steps(envelope: Envelope) -> list[PlanStep]:
    """Return the steps of a turn's plan, if it has one; queued ones it did not come to."""
    payload = envelope.payload
    steps = (payload.get("analysis_plan") or {}).get("steps", [])
    begun, done = payload.get("plan_step", 0), payload.get("agent_outputs") or {}
    return [
        PlanStep(
            roles,
            "done" if done.keys() >= set(roles) else "running" if number <= begun else "queued",
        )
        for number, roles in enumerate(steps, start=1)
    ]


def judged_requirements(payload: Payload) -> list[dict[str, Any]]:
    """Return the checklist of an analysis, each requirement with its verdict and the passages."""
    outputs = payload.get("agent_outputs") or {}
    found = {role: output.get("result") or {} for role, output in outputs.items()}
    verdicts = {
        each["requirement_id"]: each for each in found.get(Role.COMPLIANCE, {}).get("verdicts", [])
    }
    evidence = payload.get("evidence") or {}
    rows = []
    for each in found.get(Role.REQUIREMENT_EXTRACTOR, {}).get("requirements", []):
        verdict = verdicts.get(each["id"]) or {"verdict": "", "explanation": "", "evidence": []}
        shown = [evidence[name] for name in verdict["evidence"] if name in evidence]
        rows.append(each | {**verdict, "shown": shown})
    return rows


@dataclass(frozen=True)
class Found:
    """What one specialist gave, as it is shown to people, beside the checklist."""

    role: str
    output: dict[str, Any]  # as `agents.analysis.shapes.Output` has it
    items: list[tuple[str, dict[str, Any], list[dict[str, Any]]]]  # list, values, passages


def specialists_found(payload: Payload) -> list[Found]:
    """Return what each specialist gave; what `judged_requirements` has is left out."""
    evidence, outputs = payload.get("evidence") or {}, payload.get("agent_outputs") or {}
    return [
        Found(
            role,
            outputs[role],
            [
                (
                    name,
                    {key: value for key, value in item.items() if key != "evidence"},
                    [evidence[each] for each in item["evidence"] if each in evidence],
                )
                for name, items in outputs[role]["result"].items()
                if isinstance(items, list) and name not in CHECKLIST
                for item in items
            ],
        )
        for role in SPECIALISTS
        if role in outputs
    ]


def search_rounds(steps: Sequence[Step], payloads: Sequence[Payload]) -> list[dict[str, Any]]:
    """Return `{round, step, query, quality, error, passages, verdict}` for every search that ended.

    `payloads` holds what each step saw. `query` is what was searched for; after the first round the
    refined one. `verdict` is the evaluator's, None when the passages went to the answer unjudged.
    """
    rounds: list[dict[str, Any]] = []
    for step, payload in zip(steps, payloads, strict=True):
        if step.role == Role.SEARCH and step.status == Step.Status.DONE:
            rounds.append(_search_round(len(rounds) + 1, step, payload))
        elif step.role == Role.EVALUATOR and rounds and step.output:
            rounds[-1]["verdict"] = {
                **(step.output.get("evaluation") or {}),
                "refined_query": step.output.get("refined_query", ""),
                "mode": step.mode,
            }
    return rounds


def _search_round(number: int, step: Step, payload: Payload) -> dict[str, Any]:
    writes = step.output
    return {
        "round": number,
        "step": step.number,
        "query": payload.get("refined_query")
        or payload.get("canonical_question")
        or payload.get("text_eng"),
        "quality": writes.get("search_quality"),
        "error": writes.get("search_error") or None,
        "passages": [
            {name: passage.get(name) for name in PASSAGE}
            for passage in writes.get("search_results") or []
        ],
        "verdict": None,
    }


def trace(envelope: Envelope, *, staff: bool = False) -> dict[str, Any]:
    """Return the turn as JSON values: its plan, its steps with their model calls, its answer.

    What a step read isn't stored: it is what the memory and the steps before it had written.
    What models were told and replied, word for word, is for `staff` only: it holds the prompts.
    """
    steps = list(envelope.steps.all())
    payloads = list(payloads_before(envelope, steps))
    calls: dict[int | None, list[ModelCall]] = defaultdict(list)
    for call in calls_of(envelope.pk):
        calls[call.step_number].append(call)
    runs = tool_use.runs_by_step(envelope.pk)
    payload = envelope.payload
    return {
        "turn_id": str(envelope.pk),
        "conversation_id": str(envelope.conversation_id),
        "status": envelope.status,
        "mode": payload.get("mode"),
        "error_id": envelope.error_id or None,
        "created": envelope.create_ts.isoformat(),
        "seconds": round((envelope.update_ts - envelope.create_ts).total_seconds(), 4),
        "process_count": envelope.process_count,
        "memory": envelope.memory,
        "plan": plan(payload),
        "iterations": search_rounds(steps, payloads),
        "analysis": analysis(payload),
        "answer": payload.get("response", "") if envelope.ended else "",
        "citations": payload.get("citations_used") or [],
        "usage": usage_of_turn(envelope.pk) | {"roles": _usage_by_role(envelope)},
        "steps": [
            _step(step, before, [_call(call, staff=staff) for call in calls[step.number]])
            | _tools(calls[step.number], runs[step.number], staff=staff)
            for step, before in zip(steps, payloads, strict=True)
        ],
        "faults": [
            {"code": fault.code, "role": fault.role, "summary": fault.summary}
            for fault in envelope.faults.all()
        ],
    }


def _usage_by_role(envelope: Envelope) -> dict[str, Any]:
    calls = calls_of(envelope.pk)
    roles = calls.order_by("role").values_list("role", flat=True).distinct()
    return {role: usage_of_calls(calls.filter(role=role)) for role in roles}


def _step(step: Step, payload: Payload, calls: list[dict[str, Any]]) -> dict[str, Any]:
    agent = REGISTRY.get(Role(step.role))
    return {
        "number": step.number,
        "role": step.role,
        "stage": step.stage,
        "batch": step.batch,
        "status": step.condition(now()),
        "attempt": step.attempt,
        "mode": step.mode or None,
        "degraded": step.degraded or None,
        "wait_seconds": step.wait_seconds,
        "run_seconds": step.run_seconds,
        "worker": step.worker,
        "read": {name: payload[name] for name in agent.contract.reads if name in payload}
        if agent
        else {"stage": step.stage},
        "wrote": step.output,
        "model_calls": calls,
        "cost": _cost(calls),
        "cost_known": all(call["cost_known"] for call in calls),
        "error": step.error or None,
    }


def _tools(calls: Sequence[ModelCall], runs: Sequence[ToolRun], *, staff: bool) -> dict[str, Any]:
    """Return what tools did for a step, and for `staff` how a model came to have them called."""
    done = {"tool_calls": [tool_use.as_json(run, staff=staff) for run in runs]}
    return done | {"trajectory": tool_use.trajectory(calls, runs)} if staff else done


def _cost(calls: list[dict[str, Any]]) -> float | None:
    """Return US dollars; None when a call has a price that is not known."""
    if any(call["cost"] is None and call["outcome"] not in FREE for call in calls):
        return None
    return sum(call["cost"] or 0.0 for call in calls)


def _call(call: ModelCall, *, staff: bool) -> dict[str, Any]:
    """Return one call as JSON values; cost in US dollars, None when its price is not known.

    It is not known for certain, either, when an attempt before broke off, or when nothing was
    heard of the call (see `usage_of_calls`).
    """
    unheard = call.outcome in UNHEARD
    broken = any(attempt["outcome"] == Outcome.CUT_OFF for attempt in call.attempts)
    priced = call.cost is not None or call.outcome in FREE
    values = {
        "number": call.number,
        "role": call.role,
        "prompt": call.prompt,
        "prompt_hash": call.prompt_hash,
        "model": call.model,
        "provider": call.provider,
        "outcome": call.outcome,
        "error": call.error or None,
        "attempts": call.attempts,
        "finish_reason": call.finish_reason or None,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cached_tokens": call.cached_tokens,
        "cost": None if call.cost is None else dollars(call.cost),
        "cost_known": priced and not broken and not unheard,
        "cached": call.cached_from_id is not None,
        "cached_from": call.cached_from_id,
        "seconds": call.seconds,
        "first_token_seconds": call.first_token_seconds,
        "ended": None if unheard else call.created.isoformat(),
    }
    if not staff:
        return values
    messages = call.request.get("messages", [])
    return values | {"messages": messages, "reply": call.reply, "tool_calls": call.tool_calls}


# A step of a millisecond in a turn of seconds would otherwise not be seen.
LEAST_WIDTH = 0.6


@dataclass(frozen=True)
class Bar:
    """A stretch of time, in percent of the turn; text, since a template would localise floats."""

    x: str
    width: str


@dataclass(frozen=True)
class Mark:
    """One call of a model as it is drawn, inside the bar of its step."""

    call: ModelCall
    bar: Bar
    run_ms: int


@dataclass(frozen=True)
class Span:
    """One step as it is drawn: first it waited on its queue, then it ran. Times in ms."""

    step: Step
    queue: str
    condition: str
    wait_ms: int | None
    run_ms: int | None
    waited: Bar
    ran: Bar | None
    marks: list[Mark]


def timeline(
    envelope: Envelope, steps: Sequence[Step], calls: Sequence[ModelCall] = ()
) -> list[Span]:
    """Return the spans of `steps` on the axis from the turn's start to its end, or to now.

    Each holds the marks of those of `calls` that were made for it.
    """
    at = now()
    start = min([envelope.create_ts, *(step.available_at for step in steps)])
    end = max(
        [
            envelope.update_ts if envelope.ended else at,
            *(step.ended for step in steps if step.ended),
        ]
    )
    axis = Axis(start, max((end - start).total_seconds(), 0.001))
    by_step: dict[int | None, list[ModelCall]] = defaultdict(list)
    for call in calls:
        by_step[call.step_number].append(call)
    return [_span(step, by_step[step.number], axis, at) for step in steps]


@dataclass(frozen=True)
class Axis:
    """The time from the start of a turn to its end."""

    start: datetime
    seconds: float

    def bar(self, since: datetime, until: datetime, least: float) -> Bar:
        """Return the stretch between two moments, at least so many percent wide."""
        x = min(max((since - self.start).total_seconds() / self.seconds * 100, 0), 100 - least)
        width = max((until - since).total_seconds() / self.seconds * 100, least)
        return Bar(f"{x:.2f}", f"{min(width, 100 - x):.2f}")


def _span(step: Step, calls: Sequence[ModelCall], axis: Axis, at: datetime) -> Span:
    end = step.ended or at
    return Span(
        step=step,
        queue=Role(step.role).queue,
        condition=step.condition(at),
        wait_ms=_milliseconds(step.wait_seconds),
        run_ms=_milliseconds(step.run_seconds),
        waited=axis.bar(step.available_at, step.started or end, 0),
        ran=axis.bar(step.started, end, LEAST_WIDTH) if step.started else None,
        marks=[_mark(call, axis) for call in calls],
    )


def _mark(call: ModelCall, axis: Axis) -> Mark:
    # A call that is over is stored with the time of its end.
    began = call.created - timedelta(seconds=call.seconds)
    return Mark(call, axis.bar(began, call.created, LEAST_WIDTH), round(call.seconds * 1000))


def _milliseconds(seconds: float | None) -> int | None:
    """Return seconds as whole milliseconds; None stays None."""
    return None if seconds is None else round(max(seconds, 0) * 1000)
