"""Requirement extractor: makes a checklist of what a law, policy or contract requires."""

from collections.abc import Mapping

from agents.analysis.shapes import Checklist, Given
from agents.analysis.specialist import declare
from agents.names import Role

# It follows definitions and references from section to section.
ROUNDS = 15


def numbered(checklist: Checklist, _: Mapping[Role, Given]) -> Checklist:
    """Return the checklist with an id for each requirement, as verdicts name them by it."""
    ids = [each.id for each in checklist.requirements]
    if len(set(ids)) == len(ids) and all(ids):
        return checklist
    requirements = [
        each.model_copy(update={"id": f"REQ-{number:03d}"})
        for number, each in enumerate(checklist.requirements, start=1)
    ]
    return checklist.model_copy(update={"requirements": requirements})


work = declare(Role.REQUIREMENT_EXTRACTOR, rounds=ROUNDS, judge=numbered)
