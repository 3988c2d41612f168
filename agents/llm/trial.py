"""Trial: asks a model for a word or two, to see whether it can be used as it is set."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import uuid4

from django.conf import settings
from pydantic import BaseModel, Field

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Choice
from prompts.prompt import Prompt

PROMPT = Prompt("trial")
LONG = Prompt("trial_long", "lines")
FIRST = "heron"  # with which the message of LONG begins
# Of a prompt with its examples and the conversation's summary, roughly.
BESIDE_CHARACTERS = 8000
CHARACTERS_A_TOKEN = 4
CUT = (
    "but it does not know how a long request began: give it a context of 16,384 tokens or more, "
    "for Ollama by OLLAMA_CONTEXT_LENGTH where it is started; or take a model that reads more"
)


class Colour(BaseModel):
    """What the model is asked for; any word will do."""

    word: str = Field(min_length=1, max_length=40)


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    model: str  # "model@provider"
    outcome: Outcome
    seconds: float
    text: str  # the word, or why there is none
    reads_all: bool = True  # also the beginning of a request as long as ours become

    @property
    def usable(self) -> bool:
        """Whether it can be used as it is set."""
        return self.outcome is Outcome.OK and self.reads_all


def widest_choices(models: Mapping[str, Choice]) -> dict[str, Choice]:
    """Return every model that somebody asks, within the widest bounds anybody gives it."""
    choices: dict[str, Choice] = {}
    for choice in models.values():
        for name in choice.models() if choice.model else []:
            known = choices.get(name, choice)
            choices[name] = replace(
                choice,
                model=name,
                second="",
                max_tokens=max(known.max_tokens, choice.max_tokens),
                timeout=max(known.timeout, choice.timeout),
            )
    return choices


def try_model(choice: Choice) -> Trial:
    """Ask the first model of this choice; the calls are journalled and paid like any other.

    Some servers cut what is longer than their context without a word, and Ollama's is short: the
    second question has its answer at the beginning of a message as long as ours become.
    """
    start = time.monotonic()
    llm = Model(choice, Subject(f"trial/{uuid4().hex}", "trial"))
    try:
        word = llm.ask(PROMPT, Colour).word
        seconds = time.monotonic() - start
        first_word = llm.ask(LONG, Colour, lines=lines(_longest())).word
    except ModelFailure as failure:
        return Trial(choice.model, failure.outcome, time.monotonic() - start, str(failure))
    if FIRST in first_word.lower():
        return Trial(choice.model, Outcome.OK, seconds, word)
    return Trial(choice.model, Outcome.OK, seconds, f"{word}; {CUT}", reads_all=False)


def lines(characters: int) -> str:
    """Return lines that say nothing, so many characters of them."""
    line = "Line {} says nothing.\n"
    return "".join(map(line.format, range(characters // len(line))))


def _longest() -> int:
    """How many characters the longest of our requests has."""
    most = settings.MAX_CONTEXT_LENGTH + CHARACTERS_A_TOKEN * settings.HISTORY_TOKENS
    return int(most + BESIDE_CHARACTERS)
