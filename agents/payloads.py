"""Payloads: how a payload goes on with each step, as the database does it in `agents_finish`.

A turn keeps its last payload only. What it was at any step is rebuilt from the memory the turn
began with and from what each step wrote.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agents.attributes import UNIVERSAL
from agents.models import Envelope, Step
from agents.names import Role
from agents.routing import Stage

Payload = dict[str, Any]


def first(envelope: Envelope) -> Payload:
    """Return the payload a turn began with."""
    memory: Payload = envelope.memory
    return memory | {
        "stage": str(Stage.START),
        "enabled_routes": envelope.payload.get("enabled_routes", []),
        "mode": "extractive",
    }


def written(payload: Payload, role: str, writes: dict[str, Any]) -> Payload:
    """Return the payload after an agent; what it asks the user is kept apart, under its role."""
    requests = {
        asker: request
        for asker, request in payload.get("clarification_requests", {}).items()
        if asker != role
    }
    if writes.get("needs_clarification"):
        requests[role] = {
            "reason": writes["clarification_reason"],
            "message": writes.get("clarification_message", ""),
        }
    kept = {name: value for name, value in writes.items() if name not in UNIVERSAL}
    return payload | kept | {"clarification_requests": requests}


def decided(payload: Payload, record: dict[str, Any]) -> Payload:
    """Return the payload after a decision (`Decision.record()`)."""
    notes: dict[str, Any] = record.get("notes", {})
    forgotten = {name for name, value in notes.items() if value is None}
    kept = {name: value for name, value in payload.items() if name not in forgotten}
    told = {name: value for name, value in notes.items() if value is not None}
    return kept | told | {"stage": str(record.get("stage", payload["stage"]))}


def after(payload: Payload, step: Step) -> Payload:
    """Return the payload after a step of any role, as the step is stored."""
    if step.status != Step.Status.DONE:
        return payload
    if step.role == Role.MANAGER:
        return decided(payload, step.output)
    return written(payload, step.role, step.output)


def before(envelope: Envelope, steps: Sequence[Step]) -> Iterator[Payload]:
    """Yield the payload each step saw; steps that run together see the same."""
    payload = seen = first(envelope)
    batch: int | None = None
    for step in steps:
        if step.batch != batch:
            seen, batch = payload, step.batch
        yield seen
        payload = after(payload, step)
