"""Turning: a turn done to its end in this process, step by step as the workers would."""

from typing import Any
from uuid import uuid4

from agents import envelopes
from agents.manager import route
from agents.models import Envelope, Step
from agents.names import Role
from agents.steps.steps import perform_one_by_one, run_agent
from tests.conftest import MEMORY


def turn(text: str, **memory: Any) -> Envelope:
    """Return the envelope of a turn that begins with `text`, once it has ended."""
    return gone_on(begun(text, **memory))


def begun(text: str, **memory: Any) -> Envelope:
    """Return the envelope of a turn that begins with `text`."""
    return envelopes.start(
        MEMORY | {"text": text} | memory, conversation_id=uuid4(), message_id=uuid4()
    )


def gone_on(envelope: Envelope, until: Role | None = None) -> Envelope:
    """Return the envelope once its turn has ended, or this role is to work."""
    while (step := next(iter(ready(envelope)), None)) and step.role != until:
        role = Role(step.role)
        perform_one_by_one(role, route if role is Role.MANAGER else run_agent)
    envelope.refresh_from_db()
    return envelope


def ready(envelope: Envelope) -> list[Step]:
    """Return the steps that can be done now, whatever pause a failed attempt asked for."""
    Step.objects.filter(envelope=envelope, status="ready").update(available_at=envelope.create_ts)
    return list(envelope.steps.filter(status="ready"))
