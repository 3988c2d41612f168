"""Claims: what whoever does a step knows of it."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.names import Role


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
