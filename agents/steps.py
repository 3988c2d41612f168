"""Steps: claim, perform, finish. The only place that knows about leases and delivery.

A step may be delivered any number of times and takes effect once: whoever claims it holds a
token, and only the holder of the current token can finish it.
"""

import json
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.db import DataError, IntegrityError, connection, transaction

from agents import envelopes, events, faults, leases, thinking
from agents.attributes import UNIVERSAL
from agents.bell import ring
from agents.claims import Claim
from agents.contract import REGISTRY, Done
from agents.errors import AgentError
from agents.models import Envelope, Step
from agents.names import Role
from agents.routing import Decision

log = logging.getLogger(__name__)

# Functions of the database, made by migrations: a round trip each, and planned only once.
CLAIM = """SELECT * FROM agents_claim(
    %(envelope)s, %(number)s, %(token)s, %(worker)s, %(lease)s, %(attempts)s)"""
FINISH = """SELECT * FROM agents_finish(
    %(envelope)s, %(number)s, %(token)s, %(role)s, %(output)s, %(kept)s, %(asked)s,
    %(forget)s, %(to)s, %(stage)s, %(mode)s, %(degraded)s)"""


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to: what an agent did, or the manager's decision."""

    done: Done = field(default_factory=lambda: Done({}))
    decision: Decision | None = None


def claim(envelope_id: uuid.UUID, number: int) -> Claim | None:
    """Take the step in one round trip; None when it is taken, finished or not due."""
    token = uuid.uuid4()
    values = {
        "token": token,
        "lease": Step.LEASE,
        "worker": leases.WORKER,
        "envelope": envelope_id,
        "number": number,
        "attempts": Step.ATTEMPTS,
    }
    row = _row(CLAIM, values)
    if row is None:
        return None
    role, attempt, payload, process_count, stream, deadline = row
    return Claim(
        envelope_id,
        number,
        Role(role),
        attempt,
        token,
        json.loads(payload),
        process_count,
        stream,
        deadline,
    )


def perform(
    envelope_id: uuid.UUID, number: int, work: Callable[[Claim], Outcome], *, quick: bool = False
) -> None:
    """Do the step if it is still to be done.

    While `work` runs no connection is held and the lease is renewed, unless it is `quick`:
    done in less time than giving a connection back takes.
    """
    held = claim(envelope_id, number)
    if held is None:
        return
    try:
        with nullcontext() if quick else _away(held):
            outcome = work(held)
    except Exception as error:  # noqa: BLE001 the one broad except: it records
        fail(held, error)
        return
    try:
        finish(held, outcome)
    except (DataError, IntegrityError, ValueError) as error:
        # What the contract let through and the database refuses will be refused again.
        fail(held, error)


@contextmanager
def _away(held: Claim) -> Iterator[None]:
    connection.close()
    with leases.renewed(held.token):
        yield


def run_agent(held: Claim) -> Outcome:
    """Let the agent of the claimed role work on what its contract lets it see."""
    events.publish(
        held.stream, "agent_start", role=held.role, step=held.number, attempt=held.attempt
    )
    with thinking.about(held) as llm:
        return Outcome(done=REGISTRY[held.role].perform(held.payload, llm))


def finish(held: Claim, outcome: Outcome) -> bool:
    """Record the outcome and what follows from it, and ring for it.

    Returns False, and changes nothing, when the lease was lost to another worker meanwhile or
    the turn has ended.
    """
    decision = outcome.decision
    if decision and decision.ends:
        return _end(held, decision)
    row = _row(FINISH, _of_decision(held, decision) if decision else _of_agent(held, outcome))
    if row is None:
        return False
    seconds, added = row
    for number, role in json.loads(added or "[]"):
        ring(held.envelope_id, number, Role(role))
    if not decision:
        events.publish(
            held.stream,
            "agent_complete",
            role=held.role,
            step=held.number,
            seconds=seconds,
            wrote=sorted(outcome.done.writes),
            mode=outcome.done.mode,
        )
    return True


def _of_agent(held: Claim, outcome: Outcome) -> dict[str, Any]:
    """Parameters of FINISH for an agent: what it asks the user is kept apart, under its role."""
    writes = outcome.done.writes
    asked = {}
    if writes.get("needs_clarification"):
        asked[held.role] = {
            "reason": writes["clarification_reason"],
            "message": writes.get("clarification_message", ""),
        }
    kept = {name: value for name, value in writes.items() if name not in UNIVERSAL}
    return _parameters(
        held,
        record=writes,
        kept=kept,
        asked=asked,
        mode=outcome.done.mode,
        degraded=faults.storable(outcome.done.degraded),
    )


def _of_decision(held: Claim, decision: Decision) -> dict[str, Any]:
    kept = {name: value for name, value in decision.notes.items() if value is not None}
    return _parameters(
        held,
        record=decision.record(),
        kept=kept | {"stage": decision.stage},
        forget=[name for name, value in decision.notes.items() if value is None],
        to=list(decision.to),
        stage=decision.stage,
    )


def _parameters(held: Claim, *, record: dict[str, Any], **given: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"asked": {}, "forget": [], "to": None, "stage": None}
    defaults |= {"mode": "", "degraded": ""}
    values = defaults | given
    return values | {
        "envelope": held.envelope_id,
        "number": held.number,
        "token": held.token,
        "role": held.role,
        "output": json.dumps(record),
        "kept": json.dumps(values["kept"]),
        "asked": json.dumps(values["asked"]),
    }


def _end(held: Claim, decision: Decision) -> bool:
    with transaction.atomic():
        locked = _locked(held)
        if locked is None:
            return False
        envelope, step = locked
        envelopes.conclude(envelope, step, decision)
    return True


def fail(held: Claim, error: Exception) -> None:
    """Record a failed attempt: the step is due again later, or was tried often enough."""
    with transaction.atomic():
        locked = _locked(held)
        if locked is None:
            return
        envelope, step = locked
        step.error = faults.storable(f"{type(error).__name__}: {error}")
        hopeless = isinstance(error, AgentError) and error.permanent
        if step.attempt >= Step.ATTEMPTS or hopeless:
            envelopes.quarantine(envelope, step, error)
            return
        step.postpone()
    log.warning("step %s of %s will be tried again: %s", step.number, envelope.pk, step.error)
    events.publish(held.stream, "error", role=held.role, step=held.number, attempt=held.attempt)


def _locked(held: Claim) -> tuple[Envelope, Step] | None:
    """Lock the envelope; None when the lease was lost, or the turn has ended or was forgotten."""
    envelope = Envelope.objects.select_for_update().filter(pk=held.envelope_id).first()
    if envelope is None or envelope.ended:
        return None
    # The step too: claiming one whose lease lapsed takes no lock of the envelope.
    step = (
        envelope.steps.select_for_update()
        .filter(number=held.number, lease_token=held.token, status=Step.Status.RUNNING)
        .first()
    )
    return (envelope, step) if step else None


def _row(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
        return row
