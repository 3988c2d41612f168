"""Compliance: judges for each requirement of a checklist whether the documents meet it."""

from collections.abc import Collection, Mapping
from typing import cast

from agents.analysis.shapes import Checklist, Given, Judgement, Verdicts
from agents.analysis.specialist import declare
from agents.names import Role

UNSHOWN = "No passage shows it."


def believed(verdicts: Verdicts, before: Mapping[Role, Given]) -> Verdicts:
    """Return one verdict for each requirement of the checklist, and no other.

    What no passage shows is a gap, whatever the model found; so is what it left out. Where a
    requirement stands shows nothing of whether it is met.
    """
    checklist = cast("Checklist", before[Role.REQUIREMENT_EXTRACTOR])
    judged = {each.requirement_id: each for each in reversed(verdicts.verdicts)}
    return verdicts.model_copy(
        update={
            "verdicts": [
                _shown(judged.get(each.id) or _unjudged(each.id), each.evidence)
                for each in checklist.requirements
            ],
            "clashes": [each for each in verdicts.clashes if each.evidence],
        }
    )


def _shown(judgement: Judgement, source: Collection[str]) -> Judgement:
    evidence = [each for each in judgement.evidence if each not in source]
    judgement = judgement.model_copy(update={"evidence": evidence})
    if evidence or judgement.verdict == "gap":
        return judgement
    return judgement.model_copy(update={"verdict": "gap", "explanation": UNSHOWN})


def _unjudged(requirement: str) -> Judgement:
    return Judgement(
        requirement_id=requirement, verdict="gap", explanation=UNSHOWN, confidence=0, evidence=[]
    )


work = declare(Role.COMPLIANCE, needs=Role.REQUIREMENT_EXTRACTOR, judge=believed)
