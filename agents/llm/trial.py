"""Trial: asks a model for one word, to see whether it can be used as it is set."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from pydantic import BaseModel, Field

from agents.llm.choices import Choice
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from prompts.prompt import Prompt

PROMPT = Prompt("trial")


class Colour(BaseModel):
    """What the model is asked for; any word will do."""

    word: str = Field(min_length=1, max_length=40)


@dataclass(frozen=True)
class Tried:
    """What came of it."""

    model: str  # "model@provider"
    outcome: Outcome
    seconds: float
    told: str  # the word, or why there is none


def patient(models: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return every model that somebody asks, within the widest bounds anybody gives it."""
    found: dict[str, Choice] = {}
    for choice in models.values():
        for name in choice.models() if choice.model else []:
            known = found.get(name, choice)
            found[name] = replace(
                choice,
                model=name,
                second="",
                max_tokens=max(known.max_tokens, choice.max_tokens),
                timeout=max(known.timeout, choice.timeout),
            )
    return found


def tried(choice: Choice) -> Tried:
    """Ask the first model of this choice; the call is journalled and paid like any other."""
    begun = time.monotonic()
    llm = Model(choice, Subject(f"trial/{uuid4().hex}", "trial"))
    try:
        outcome, told = Outcome.OK, llm.ask(PROMPT, Colour).word
    except ModelFailure as failure:
        outcome, told = failure.outcome, str(failure)
    return Tried(choice.model, outcome, time.monotonic() - begun, told)
