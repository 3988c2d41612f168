"""Verdict: what a model says that passages say of a requirement; there is none without a model."""

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

from django.conf import settings
from pydantic import BaseModel, Field

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure
from agents.names import Role
from prompts.prompt import Block, Prompt

PROMPT = Prompt("verdict", "requirement", "passages")
# As ContractNLI calls them.
Choice = Literal["Entailment", "Contradiction", "NotMentioned"]
CHOICES: tuple[Choice, ...] = ("Entailment", "Contradiction", "NotMentioned")


class Verdict(BaseModel):
    """What passages say of a requirement, and which of them do."""

    verdict: Choice
    passages: list[int] = Field(max_length=20)  # their numbers, from 1
    reason: str = Field(max_length=600)

    @property
    def places(self) -> list[int]:
        """The places of those passages, from 0."""
        return [number - 1 for number in self.passages]


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
    """Return the model's verdict; numbers of passages that there are not are left out.

    Raises ModelFailure.
    """
    blocks = [
        Block("passage", text, {"number": str(number)})
        for number, text in enumerate(passages, start=1)
    ]
    said = llm.ask(PROMPT, Verdict, requirement=requirement, passages=blocks)
    known = [each for each in dict.fromkeys(said.passages) if 1 <= each <= len(passages)]
    # What no passage bears is not mentioned, whatever the model calls it.
    choice: Choice = said.verdict if known else "NotMentioned"
    return said.model_copy(
        update={"passages": known if choice != "NotMentioned" else [], "verdict": choice}
    )
