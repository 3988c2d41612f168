"""Claims: takes steps, and what whoever does one knows of it."""

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from agents import leases
from agents.models import Step
from agents.names import Role

# Functions of the database, made by migrations: a round trip each, and planned only once.
CLAIM = "SELECT * FROM agents_claim(%s, %s, %s, %s, %s, %s)"
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


def claim(envelope_id: uuid.UUID, number: int) -> Claim | None:
    """Take the step in one round trip; None when it is taken, finished or not due."""
    token = uuid.uuid4()
    given: list[Any] = [envelope_id, number, token, leases.WORKER, Step.LEASE, Step.ATTEMPTS]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, given)
        row = cursor.fetchone()
    if row is None:
        return None
    role, attempt, payload, *rest = row
    return Claim(envelope_id, number, Role(role), attempt, token, json.loads(payload), *rest)


def claim_ready(role: Role, most: int) -> list[Claim]:
    """Take what is ready for the role, at most so many steps, in one round trip."""
    given: list[Any] = [role, most, leases.WORKER, Step.LEASE, Step.ATTEMPTS]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_READY, given)
        return [
            Claim(envelope, number, role, attempt, token, json.loads(payload), *rest)
            for envelope, number, token, attempt, payload, *rest in cursor.fetchall()
        ]
