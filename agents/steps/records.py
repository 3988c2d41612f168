"""Records: how a step is claimed in the database, what it came to, and how its payload goes on."""

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from agents.attributes import UNIVERSAL
from agents.contract import Done
from agents.models import Envelope, Step
from agents.names import Role
from agents.routing import Decision, Stage
from agents.steps import events, step_lease
from agents.steps.doorbell import bell
from knowledge.postgres_text import storable

# A function of the database, in functions.sql: one round trip, and planned only once.
CLAIM_READY = "SELECT * FROM agents_claim_ready(%s, %s, %s, %s, %s)"


@dataclass(frozen=True)
class Claim:
    """One attempt at a step, held under a lease token."""

    envelope_id: uuid.UUID
    number: int
    role: Role
    attempt: int
    token: uuid.UUID
    payload: dict[str, Any]
    process_count: int
    stream: str
    deadline: datetime


def claim_ready(role: Role, most: int) -> list[Claim]:
    """Take what is ready for the role, at most so many steps, in one round trip."""
    given: list[Any] = [role, most, step_lease.WORKER, Step.LEASE, Step.ATTEMPTS]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_READY, given)
        return [
            Claim(envelope, number, role, attempt, token, json.loads(payload), *rest)
            for envelope, number, token, attempt, payload, *rest in cursor.fetchall()
        ]


# A function of the database, in functions.sql: a round trip, and planned only once.
FINISH = """SELECT * FROM agents_finish(
    %(envelope)s, %(number)s, %(token)s, %(role)s, %(output)s::jsonb, %(kept)s::jsonb,
    %(asked)s::jsonb, %(forget)s, %(to)s, %(stage)s, %(mode)s, %(degraded)s)"""
# The same for several, in one transaction: one that is refused takes the others with it.
FINISH_ALL = """SELECT place, finished.* FROM jsonb_to_recordset(%s::jsonb) AS done(
        place integer, envelope uuid, number integer, token uuid, role text, output jsonb,
        kept jsonb, asked jsonb, forget text[], "to" text[], stage text, mode text, degraded text)
    CROSS JOIN LATERAL agents_finish(
        done.envelope, done.number, done.token, done.role, done.output, done.kept, done.asked,
        done.forget, done."to", done.stage, done.mode, done.degraded) AS finished"""
DOCUMENTS = ("output", "kept", "asked")


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to: what an agent did, or the manager's decision."""

    done: Done = field(default_factory=lambda: Done({}))
    decision: Decision | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the turn does not end with it."""
        return not (self.decision and self.decision.ends)


def record(held: Claim, outcome: Outcome) -> list[events.Command] | None:
    """Return what to send to whom it concerns; None when the lease was lost or the turn ended."""
    values = _values(held, outcome)
    values |= {name: json.dumps(values[name]) for name in DOCUMENTS}
    with connection.cursor() as cursor:
        cursor.execute(FINISH, values)
        row = cursor.fetchone()
    return _following(held, outcome, *row) if row else None


def record_all(came: Iterable[tuple[Claim, Outcome]]) -> list[events.Command]:
    """Record several; return what to send to whom they concern."""
    # Always in the same order, so that two that do this never wait for each other.
    ordered = sorted(came, key=lambda pair: pair[0].envelope_id)
    done = [{"place": place} | _values(*pair) for place, pair in enumerate(ordered)]
    with connection.cursor() as cursor:
        cursor.execute(FINISH_ALL, [json.dumps(done, default=str)])
        rows = cursor.fetchall()
    return [command for place, *row in rows for command in _following(*ordered[place], *row)]


def _values(held: Claim, outcome: Outcome) -> dict[str, Any]:
    identity = {
        "envelope": held.envelope_id,
        "number": held.number,
        "token": held.token,
        "role": held.role,
    }
    decision = outcome.decision
    return identity | (_of_decision(decision) if decision else _of_agent(held.role, outcome.done))


def _of_agent(role: Role, done: Done) -> dict[str, Any]:
    """What an agent asks the user is kept apart, under its role."""
    writes, asked = done.writes, {}
    if writes.get("needs_clarification"):
        asked[role] = {
            "reason": writes["clarification_reason"],
            "message": writes.get("clarification_message", ""),
        }
    return {
        "output": writes,
        "kept": {name: value for name, value in writes.items() if name not in UNIVERSAL},
        "asked": asked,
        "forget": [],
        "to": None,
        "stage": None,
        "mode": done.mode,
        "degraded": storable(done.degraded),
    }


def _of_decision(decision: Decision) -> dict[str, Any]:
    kept = {name: value for name, value in decision.notes.items() if value is not None}
    return {
        "output": decision.record(),
        "kept": kept | {"stage": decision.stage},
        "asked": {},
        "forget": [name for name, value in decision.notes.items() if value is None],
        "to": list(decision.to),
        "stage": decision.stage,
        "mode": "",
        "degraded": "",
    }


def _following(
    held: Claim, outcome: Outcome, seconds: float, added: str | None
) -> list[events.Command]:
    """Bells first, then what watchers are told."""
    bells = [
        bell(held.envelope_id, number, Role(role)) for number, role in json.loads(added or "[]")
    ]
    if outcome.decision:
        return bells
    told = events.told(
        held.stream,
        "agent_complete",
        role=held.role,
        step=held.number,
        seconds=seconds,
        wrote=sorted(outcome.done.writes),
        mode=outcome.done.mode,
    )
    return [*bells, *told]


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
