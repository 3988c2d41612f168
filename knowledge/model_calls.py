"""Model calls: which questions models are asked about documents, and which they have answered."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

# Names of questions.
DESCRIPTION, RELATIONS = "description", "relations"

# Told digests of texts; returns when a model first answered about each of them that it did.
Answered = Callable[[Collection[str]], Mapping[str, datetime]]


@dataclass(frozen=True)
class Question:
    """What a model is asked about every document that is taken in."""

    is_on: Callable[[], bool]
    answered: Answered


_questions: dict[str, Question] = {}


def register(name: str, question: Question) -> None:
    """Let it be known that models are asked this, whenever it is on."""
    _questions[name] = question


def is_on() -> bool:
    """Tell whether a model is asked anything."""
    return any(question.is_on() for question in _questions.values())


def open_questions(texts: Mapping[str, tuple[str, datetime]]) -> dict[str, frozenset[str]]:
    """Return the names of the questions that no model has answered about texts.

    Of each text, by whatever key, the digest (`changes.digest`) is given, and when the document
    was stored: what a model answered later does not stand in it.
    """
    open_names: dict[str, set[str]] = {key: set() for key in texts}
    for name, question in _questions.items():
        if not question.is_on():
            continue
        answered = question.answered({digest for digest, _ in texts.values()})
        for key, (digest, stored) in texts.items():
            if digest not in answered or answered[digest] > stored:
                open_names[key].add(name)
    return {key: frozenset(names) for key, names in open_names.items()}
