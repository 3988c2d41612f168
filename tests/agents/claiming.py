"""Claiming: a step taken as the workers of its role would take it, and the bells of a queue."""

from uuid import UUID

from agents.models import Step
from agents.names import Role
from agents.steps import events
from agents.steps.records import Claim, claim_ready


def claim(envelope_id: UUID, number: int) -> Claim | None:
    """Take this step, which must be the next of its role; None when it cannot be taken."""
    step = Step.objects.filter(envelope_id=envelope_id, number=number).first()
    claims = claim_ready(Role(step.role), 1) if step else []
    assert [(step.envelope_id, step.number) for step in claims] in ([], [(envelope_id, number)])
    return claims[0] if claims else None


def claimed(envelope_id: UUID, number: int) -> Claim:
    """Take this step, which must be ready."""
    step = claim(envelope_id, number)
    assert step is not None
    return step


def bells(role: Role) -> int:
    """Return how many bells hang in the queue of this role."""
    return int(events.connection().llen(role.queue))
