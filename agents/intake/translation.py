"""Translation: gives the question in English, as far as that can be done honestly."""

from agents.contract import View, Writes, agent
from agents.intake.spoken import likelihood
from agents.languages import ENGLISH, base
from agents.names import Role

SURELY_ENGLISH = 0.9


@agent(
    Role.TRANSLATION,
    reads=("text", "language"),
    writes=("text_eng", "translation_confidence", "corrections_made"),
)
def carry_over(view: View) -> Writes:
    """Pass the text on unchanged, certain when it is English and with no confidence otherwise.

    Somebody who asked for answers in another language may well go on writing English.
    """
    text = view.text or ""
    english = base(view.language or ENGLISH) == ENGLISH
    english = english or likelihood(text).get(ENGLISH, 0) >= SURELY_ENGLISH
    return {
        "text_eng": text,
        "translation_confidence": 1.0 if english else 0.0,
        "corrections_made": [],
    }
