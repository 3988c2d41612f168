"""Claiming: a step taken as the workers of its role would take it."""

from uuid import UUID

from agents.models import Step
from agents.names import Role
from agents.steps.records import Claim, claim_ready


def claim(envelope_id: UUID, number: int) -> Claim | None:
    """Take this step, which must be the next of its role; None when it cannot be taken."""
    step = Step.objects.filter(envelope_id=envelope_id, number=number).first()
    taken = claim_ready(Role(step.role), 1) if step else []
    assert [(each.envelope_id, each.number) for each in taken] in ([], [(envelope_id, number)])
    return taken[0] if taken else None
