"""Vagueness: how little a question says about what it is about."""

from pathlib import Path

from agents.intake.wording import REFERENCE
from agents.terms import content_words, vocabulary

# From here on asking back is better than searching for nothing in particular.
VAGUE = 0.6
GENERAL = frozenset().union(*vocabulary(Path(__file__).parent / "general_words.txt").values())


def telling(text: str) -> list[str]:
    """The words of `text` that say what it is about."""
    return [word for word in content_words(text) if word not in GENERAL]


def vagueness(question: str) -> float:
    """How vague a question is: 0 when it names its subject, 1 when nothing in it does."""
    said = len(telling(question))
    refers = REFERENCE.search(question) is not None
    if not said:
        return 1.0 if refers else 0.9
    if said == 1:
        return 0.4 if refers else 0.2
    return 0.1 if refers else 0.0
