"""Verdict: what a model says that passages say of a requirement; there is none without a model.

It is asked as the compliance agent asks it, without tools.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal

from django.conf import settings
from pydantic import BaseModel

from agents.analysis import shapes
from agents.analysis.compliance import believed
from agents.analysis.shapes import Checklist, Requirement, Verdicts
from agents.analysis.specialist import only_known, prompt_of, told
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure
from agents.llm.schema import form_of
from agents.names import Role
from prompts.prompt import Block

# As ContractNLI calls them.
Choice = Literal["Entailment", "Contradiction", "NotMentioned"]
CHOICES: tuple[Choice, ...] = ("Entailment", "Contradiction", "NotMentioned")
CALLED: Mapping[shapes.Verdict, Choice] = {
    "compliant": "Entailment",
    "violation": "Contradiction",
    "gap": "NotMentioned",
}


class Verdict(BaseModel):
    """What passages say of a requirement, and which of them do."""

    verdict: Choice
    places: list[int]  # of the passages, from 0
    reason: str = ""


def model_name() -> str:
    """Return the compliance agent's model, which is asked; empty when none is set."""
    return settings.MODELS[Role.COMPLIANCE].model


def judged(requirement: str, passages: Sequence[str]) -> Verdict | None:
    """Return the verdict of the compliance agent's model; None where it fails.

    Asked again for the same, also after it was stopped in between, it is not paid again.
    """
    choice = settings.MODELS[Role.COMPLIANCE]
    text = json.dumps([choice.model, requirement, *passages])
    digest = sha256(text.encode(errors="replace")).hexdigest()
    llm = Model(choice, Subject(f"requirement/{digest}", Role.COMPLIANCE))
    try:
        return judge(llm, requirement, passages)
    except ModelFailure:
        return None


def judge(llm: Model, requirement: str, passages: Sequence[str]) -> Verdict:
    """Return the model's verdict; what no passage bears is not mentioned. Raises ModelFailure."""
    places = {f"p{place:08x}": place for place in range(len(passages))}
    checklist = Checklist(
        summary="",
        target="",
        requirements=[
            Requirement(
                id="REQ-001",
                requirement=requirement,
                source_section="",
                severity="mandatory",
                applicability="",
                target="",
                evidence=[],
            )
        ],
    )
    said = llm.ask(
        prompt_of(Role.COMPLIANCE),
        Verdicts,
        question=requirement,
        before=[Block(Role.REQUIREMENT_EXTRACTOR, checklist.model_dump_json())],
        passages=[told(name, "", passages[place]) for name, place in places.items()],
        form=form_of(Verdicts),
    )
    known, _ = only_known(said, places)
    (found,) = believed(known, {Role.REQUIREMENT_EXTRACTOR: checklist}).verdicts
    return Verdict(
        verdict=CALLED[found.verdict],
        places=[] if found.verdict == "gap" else [places[name] for name in found.evidence],
        reason=found.explanation,
    )
