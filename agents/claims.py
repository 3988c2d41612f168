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
    given: list[Any] = [role, most, leases.WORKER, Step.LEASE, Step.ATTEMPTS]
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_READY, given)
        return [
            Claim(envelope, number, role, attempt, token, json.loads(payload), *rest)
            for envelope, number, token, attempt, payload, *rest in cursor.fetchall()
        ]
