"""Translation: gives the question in English, as far as that can be done honestly."""

from pydantic import BaseModel

from agents.contract import View, Writes, llm_agent
from agents.intake.history import Share, Written, first
from agents.intake.lang import likelihood
from agents.intake.literals import lost, rewritten
from agents.llm.model import Model
from agents.llm.outcomes import ModelFailure, Outcome
from agents.names import Role
from agents.words import ENGLISH, base
from prompts.prompt import Prompt

PROMPT = Prompt("translation", "text", "language")
SURELY_ENGLISH = 0.9
# A translation that lost something is no sure one.
UNSURE = 0.5
MOST_CORRECTIONS, LONGEST_CORRECTION = 20, 200


class Message(View):
    """What translation reads."""

    text: str = ""
    language: str = ENGLISH


class Translated(BaseModel):
    """The text in English, as the model gives it."""

    text_eng: Written
    corrections: list[str]
    confidence: Share


@llm_agent(
    Role.TRANSLATION,
    reads=Message,
    writes=("text_eng", "translation_confidence", "corrections_made"),
)
def translate(view: Message, llm: Model) -> Writes:
    """Let the model translate or correct; what must survive and did not is put back.

    Raises ModelFailure when English text came back as another text.
    """
    text = view.text
    if not text.strip():
        return carry_over(view)
    found = llm.ask(PROMPT, Translated, text=text, language=view.language)
    english = found.text_eng
    if _surely_english(text) and rewritten(text, english):
        raise ModelFailure(Outcome.MALFORMED, "the model wrote another text than the one given")
    missing = lost(text, english)
    return {
        "text_eng": "\n".join([english, *missing]),
        "translation_confidence": min(found.confidence, UNSURE) if missing else found.confidence,
        "corrections_made": first(found.corrections, MOST_CORRECTIONS, LONGEST_CORRECTION),
    }


def _surely_english(text: str) -> bool:
    return likelihood(text).get(ENGLISH, 0) >= SURELY_ENGLISH


@translate.without_model
def carry_over(view: Message) -> Writes:
    """Pass the text on unchanged, certain when it is English and with no confidence otherwise.

    Somebody who asked for answers in another language may well go on writing English.
    """
    text = view.text
    english = base(view.language) == ENGLISH or _surely_english(text)
    return {
        "text_eng": text,
        "translation_confidence": 1.0 if english else 0.0,
        "corrections_made": [],
    }
