"""Compliance: judges for each requirement of a checklist whether the documents meet it."""

from collections.abc import Mapping
from typing import cast

from agents.analysis.shapes import Checklist, Given, Judgement, Verdicts
from agents.analysis.specialist import declare
from agents.names import Role

UNSHOWN = "No passage shows it."


def believed(verdicts: Verdicts, before: Mapping[Role, Given]) -> Verdicts:
    """Return one verdict for each requirement of the checklist, and no other.

    What no passage shows is a gap, whatever the model found; so is what it left out.
    """
    checklist = cast("Checklist", before[Role.REQUIREMENT_EXTRACTOR])
    judged = {each.requirement_id: each for each in reversed(verdicts.verdicts)}
    return verdicts.model_copy(
        update={
            "verdicts": [
                _shown(judged.get(each.id) or _unjudged(each.id)) for each in checklist.requirements
            ],
            "clashes": [each for each in verdicts.clashes if each.evidence],
        }
    )


def _shown(judgement: Judgement) -> Judgement:
    if judgement.evidence or judgement.verdict == "gap":
        return judgement
    return judgement.model_copy(update={"verdict": "gap", "explanation": UNSHOWN})


def _unjudged(requirement: str) -> Judgement:
    return Judgement(
        requirement_id=requirement, verdict="gap", explanation=UNSHOWN, confidence=0, evidence=[]
    )


work = declare(Role.COMPLIANCE, needs=Role.REQUIREMENT_EXTRACTOR, judge=believed)
