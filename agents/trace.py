"""Trace: everything that happened in a turn, step by step, rebuilt from its rows."""

from collections import defaultdict
from typing import Any

from django.utils.timezone import now

from agents import payloads
from agents.contract import REGISTRY
from agents.llm.outcomes import Outcome
from agents.models import Envelope, ModelCall, Step
from agents.names import Role
from agents.rounds import plan, rounds
from agents.usage import FREE, calls_of, dollars, of_turn, spent


def trace(envelope: Envelope, *, staff: bool = False) -> dict[str, Any]:
    """Return the turn as JSON values: its plan, its steps with their model calls, its answer.

    What a step read isn't stored: it is what the memory and the steps before it had written.
    What models were told and replied, word for word, is for `staff` only: it holds the prompts.
    """
    steps = list(envelope.steps.all())
    seen = list(payloads.before(envelope, steps))
    calls: dict[int | None, list[ModelCall]] = defaultdict(list)
    for call in calls_of(envelope.pk):
        calls[call.step_number].append(call)
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
        "iterations": rounds(steps, seen),
        "answer": payload.get("response", "") if envelope.ended else "",
        "citations": payload.get("citations_used") or [],
        "usage": of_turn(envelope.pk) | {"roles": _by_role(envelope)},
        "steps": [
            _step(step, read, [_call(call, staff=staff) for call in calls[step.number]])
            for step, read in zip(steps, seen, strict=True)
        ],
        "faults": [
            {"code": fault.code, "role": fault.role, "summary": fault.summary}
            for fault in envelope.faults.all()
        ],
    }


def _by_role(envelope: Envelope) -> dict[str, Any]:
    calls = calls_of(envelope.pk)
    roles = calls.order_by("role").values_list("role", flat=True).distinct()
    return {role: spent(calls.filter(role=role)) for role in roles}


def _step(step: Step, seen: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
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
        "read": {name: seen[name] for name in agent.contract.reads if name in seen}
        if agent
        else {"stage": step.stage},
        "wrote": step.output,
        "model_calls": calls,
        "cost": _sum(calls),
        "cost_known": all(call["cost_known"] for call in calls),
        "error": step.error or None,
    }


def _sum(calls: list[dict[str, Any]]) -> float | None:
    """Return US dollars; None when a call has a price that is not known."""
    if any(call["cost"] is None and call["outcome"] not in FREE for call in calls):
        return None
    return sum(call["cost"] or 0.0 for call in calls)


def _call(call: ModelCall, *, staff: bool) -> dict[str, Any]:
    """Return one call as JSON values; cost in US dollars, None when its price is not known.

    It is not known for certain, either, when an attempt before broke off (see `usage.spent`).
    """
    broken = any(each["outcome"] == Outcome.CUT_OFF for each in call.attempts)
    priced = call.cost is not None or call.outcome in FREE
    told = {
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
        "cost_known": priced and not broken,
        "cached": call.cached_from_id is not None,
        "cached_from": call.cached_from_id,
        "seconds": call.seconds,
        "first_token_seconds": call.first_token_seconds,
        "ended": call.created.isoformat(),
    }
    if not staff:
        return told
    messages = call.request.get("messages", [])
    return told | {"messages": messages, "reply": call.reply, "tool_calls": call.tool_calls}
