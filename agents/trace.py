"""Trace: everything that happened in a turn, step by step, rebuilt from its rows."""

from typing import Any

from django.utils.timezone import now

from agents.contract import REGISTRY
from agents.models import Envelope, Step
from agents.names import Role


def trace(envelope: Envelope) -> dict[str, Any]:
    """Return the turn as JSON values: its envelope, and per step what it read and wrote.

    What a step read isn't stored: it is what the memory and the steps before it had written.
    """
    steps, seen = [], dict(envelope.memory)
    for step in envelope.steps.all():
        steps.append(_step(step, seen))
        if step.role != Role.MANAGER:
            seen |= step.output
        else:
            seen |= step.output.get("notes", {})
    return {
        "turn_id": str(envelope.pk),
        "conversation_id": str(envelope.conversation_id),
        "status": envelope.status,
        "error_id": envelope.error_id or None,
        "created": envelope.create_ts.isoformat(),
        "seconds": round((envelope.update_ts - envelope.create_ts).total_seconds(), 4),
        "process_count": envelope.process_count,
        "memory": envelope.memory,
        "steps": steps,
        "faults": [
            {"code": fault.code, "role": fault.role, "summary": fault.summary}
            for fault in envelope.faults.all()
        ],
    }


def _step(step: Step, seen: dict[str, Any]) -> dict[str, Any]:
    agent = REGISTRY.get(Role(step.role))
    return {
        "number": step.number,
        "role": step.role,
        "stage": step.stage,
        "batch": step.batch,
        "status": step.condition(now()),
        "attempt": step.attempt,
        "wait_seconds": step.wait_seconds,
        "run_seconds": step.run_seconds,
        "worker": step.worker,
        "read": {name: seen[name] for name in agent.contract.reads if name in seen}
        if agent
        else {"stage": step.stage},
        "wrote": step.output,
        "error": step.error or None,
    }
