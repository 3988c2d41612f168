"""Recording: tells the database what steps came to; it answers which steps follow."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from agents import events
from agents.attributes import UNIVERSAL
from agents.bell import bell
from agents.claims import Claim
from agents.contract import Done
from agents.names import Role
from agents.routing import Decision
from knowledge.postgres_text import storable

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
