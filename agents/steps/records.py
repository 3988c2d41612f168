"""Records: a step in the database, from its claim to what it adds to the payload of its turn.

Claiming and recording are functions of the database, in functions.sql: one round trip each, and
planned once per connection. What a recorded step does to the payload, `agents_finish` does in the
database; `payload_after` does the same to a payload in memory, for traces and replays.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from agents.attributes import REDUCERS, UNIVERSAL
from agents.contract import Result
from agents.decision import Decision, Stage
from agents.models import Envelope, Step
from agents.names import Role
from agents.reducer import reduced
from agents.steps.doorbell import ring_command
from agents.steps.events import Command, event_commands
from agents.steps.step_lease import WORKER
from knowledge.postgres_text import storable

CLAIM_READY = "SELECT * FROM agents_claim_ready(%s, %s, %s, %s, %s)"
FINISH = """SELECT * FROM agents_finish(
    %(envelope)s, %(number)s, %(token)s, %(role)s, %(output)s::jsonb, %(kept)s::jsonb,
    %(asked)s::jsonb, %(forget)s, %(to)s, %(stage)s, %(mode)s, %(degraded)s, %(reducers)s::jsonb,
    %(seconds)s)"""
# The same for several, in one transaction: one that is refused takes the others with it.
FINISH_ALL = """SELECT place, finished.* FROM jsonb_to_recordset(%s::jsonb) AS done(
        place integer, envelope uuid, number integer, token uuid, role text, output jsonb,
        kept jsonb, asked jsonb, forget text[], "to" text[], stage text, mode text, degraded text,
        reducers jsonb, seconds float8)
    CROSS JOIN LATERAL agents_finish(
        done.envelope, done.number, done.token, done.role, done.output, done.kept, done.asked,
        done.forget, done."to", done.stage, done.mode, done.degraded, done.reducers,
        done.seconds) AS finished"""
JSON_COLUMNS = ("output", "kept", "asked", "reducers")

Payload = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """One attempt at a step, held under a lease token."""

    envelope_id: uuid.UUID
    number: int
    role: Role
    attempt: int
    token: uuid.UUID
    payload: Payload
    process_count: int
    stream: str
    deadline: datetime
    conversation_id: uuid.UUID

    @property
    def names(self) -> dict[str, Any]:
        """What a line of the log says of it; see `agents.trace.correlation`."""
        return {
            "conversation": self.conversation_id,
            "turn": self.envelope_id,
            "step": self.number,
            "attempt": self.attempt,
            "role": self.role,
        }


@dataclass(frozen=True)
class Conclusion:
    """What an attempt came to: what an agent wrote, or the manager's decision."""

    result: Result = field(default_factory=lambda: Result({}))
    trajectory: Sequence[Payload] = ()  # the calls of tools, as watchers see them
    decision: Decision | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the turn does not end with it."""
        return not (self.decision and self.decision.ends)


def claim_of(step: Step, token: uuid.UUID) -> Claim:
    """Return the claim of a step that its holder took under this token in another way."""
    turn = step.envelope
    return Claim(
        turn.pk,
        step.number,
        Role(step.role),
        step.attempt,
        token,
        turn.payload,
        turn.process_count,
        turn.target_list,
        turn.deadline,
        turn.conversation_id,
    )


def claim_ready(role: Role, most: int) -> list[Claim]:
    """Claim what is ready for the role, at most so many steps, in one round trip."""
    parameters: list[Any] = [role, most, WORKER, Step.LEASE, Step.ATTEMPTS]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_READY, parameters)
        return [
            Claim(envelope, number, role, attempt, token, json.loads(payload), *rest)
            for envelope, number, token, attempt, payload, *rest in cursor.fetchall()
        ]


def record(claim: Claim, conclusion: Conclusion) -> list[Command] | None:
    """Return what to send to whom it concerns; None when the lease was lost or the turn ended."""
    row = _row(claim, conclusion)
    row |= {name: json.dumps(row[name]) for name in JSON_COLUMNS}
    with connection.cursor() as cursor:
        cursor.execute(FINISH, row)
        recorded = cursor.fetchone()
    return _commands(claim, conclusion, *recorded) if recorded else None


def record_all(conclusions: Iterable[tuple[Claim, Conclusion]]) -> list[Command]:
    """Record several; return what to send to whom they concern."""
    # Always in the same order, so that two that do this never wait for each other.
    ordered = sorted(conclusions, key=lambda pair: pair[0].envelope_id)
    rows = [{"place": place} | _row(*pair) for place, pair in enumerate(ordered)]
    with connection.cursor() as cursor:
        cursor.execute(FINISH_ALL, [json.dumps(rows, default=str)])
        recorded = cursor.fetchall()
    return [
        command for place, *columns in recorded for command in _commands(*ordered[place], *columns)
    ]


def _row(claim: Claim, conclusion: Conclusion) -> dict[str, Any]:
    """Return the parameters of `agents_finish` by name."""
    step = {
        "envelope": claim.envelope_id,
        "number": claim.number,
        "token": claim.token,
        "role": claim.role,
    }
    if conclusion.decision:
        return step | _columns_of_decision(conclusion.decision)
    return step | _columns_of_result(claim.role, conclusion.result)


def _columns_of_result(role: Role, result: Result) -> dict[str, Any]:
    return {
        "output": result.writes,
        "kept": _lasting(result.writes),
        "asked": _requests(role, result.writes),
        "forget": [],
        "to": None,
        "stage": None,
        "mode": result.mode,
        "degraded": storable(result.degraded),
        "reducers": REDUCERS,
        "seconds": None,
    }


def _columns_of_decision(decision: Decision) -> dict[str, Any]:
    kept, forgotten = _notes(decision.notes)
    return {
        "output": decision.record(),
        "kept": kept | {"stage": decision.stage},
        "asked": {},
        "forget": forgotten,
        "to": list(decision.to),
        "stage": decision.stage,
        "mode": "",
        "degraded": "",
        "reducers": {},
        "seconds": decision.seconds,
    }


def _commands(
    claim: Claim, conclusion: Conclusion, seconds: float, steps: str | None
) -> list[Command]:
    """What watchers see, then bells for the steps that follow, [[number, role], ...] as JSON."""
    bells = [
        ring_command(claim.envelope_id, number, Role(role))
        for number, role in json.loads(steps or "[]")
    ]
    if conclusion.decision:
        return bells
    complete = event_commands(
        claim.stream,
        "agent_complete",
        role=claim.role,
        step=claim.number,
        seconds=seconds,
        wrote=sorted(conclusion.result.writes),
        mode=conclusion.result.mode,
        trajectory=conclusion.trajectory,
        **_analysis(claim.role, conclusion.result.writes),
    )
    return [*complete, *bells]


def _analysis(role: Role, writes: dict[str, Any]) -> dict[str, Any]:
    """Who will work on an analysis, and which specialist came to nothing, for watchers."""
    plan = writes.get("analysis_plan")
    told = {"plan": plan["steps"], "estimate": plan["estimate"]} if plan else {}
    reason = (writes.get("agent_outputs") or {}).get(role, {}).get("reason")
    return told | {"reason": reason} if reason else told


def _lasting(writes: dict[str, Any]) -> dict[str, Any]:
    """What an agent wrote for everybody; what it asks the user is kept apart, under its role."""
    return {name: value for name, value in writes.items() if name not in UNIVERSAL}


def _requests(role: str, writes: dict[str, Any]) -> dict[str, Any]:
    if not writes.get("needs_clarification"):
        return {}
    reason, message = writes["clarification_reason"], writes.get("clarification_message", "")
    return {role: {"reason": reason, "message": message}}


def _notes(notes: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Split the notes of a decision into what is kept and the names of what is forgotten."""
    kept = {name: value for name, value in notes.items() if value is not None}
    return kept, [name for name in notes if name not in kept]


def first_payload(envelope: Envelope) -> Payload:
    """Return the payload a turn began with."""
    memory: Payload = envelope.memory
    return memory | {
        "stage": str(Stage.START),
        "enabled_routes": envelope.payload.get("enabled_routes", []),
        "mode": "extractive",
    }


def payload_after_agent(payload: Payload, role: str, writes: dict[str, Any]) -> Payload:
    """Return the payload after an agent has written."""
    requests = dict(payload.get("clarification_requests", {}))
    requests.pop(role, None)
    requests |= _requests(role, writes)
    kept = {
        name: reduced(REDUCERS[name], payload.get(name), value) if name in REDUCERS else value
        for name, value in _lasting(writes).items()
    }
    return payload | kept | {"clarification_requests": requests}


def payload_after_decision(payload: Payload, decision: dict[str, Any]) -> Payload:
    """Return the payload after a decision, as `Decision.record()` has it."""
    kept, forgotten = _notes(decision.get("notes", {}))
    remaining = {name: value for name, value in payload.items() if name not in forgotten}
    return remaining | kept | {"stage": str(decision.get("stage", payload["stage"]))}


def payload_after(payload: Payload, step: Step) -> Payload:
    """Return the payload after a step of any role, as the step is stored."""
    if step.status != Step.Status.DONE:
        return payload
    if step.role == Role.MANAGER:
        return payload_after_decision(payload, step.output)
    return payload_after_agent(payload, step.role, step.output)


def payloads_before(envelope: Envelope, steps: Sequence[Step]) -> Iterator[Payload]:
    """Yield the payload each step saw; steps that run together see the same."""
    payload = payload_of_batch = first_payload(envelope)
    batch: int | None = None
    for step in steps:
        if step.batch != batch:
            payload_of_batch, batch = payload, step.batch
        yield payload_of_batch
        payload = payload_after(payload, step)
