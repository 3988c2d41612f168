"""Model calls: which questions models are asked about documents, and which they have answered."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

# Names of questions.
DESCRIPTION, RELATIONS = "description", "relations"

# Told digests of texts; returns when a model first answered about each of them that it did.
Answered = Callable[[Collection[str]], Mapping[str, datetime]]


@dataclass(frozen=True)
class Estimate:
    """What it will take to ask a model about documents."""

    model: str  # "model@provider"
    documents: int
    tokens: int  # that it reads, roughly
    most_tokens: int  # that it may write
    cost: float | None  # US dollars at most; None: its price is not known

    def __str__(self) -> str:
        known = (
            "at a price that is not known" if self.cost is None else f"at most {self.cost:.4f} USD"
        )
        return (
            f"{self.documents} call{'s' * (self.documents != 1)} of {self.model}, about "
            f"{self.tokens:,} tokens to read and at most {self.most_tokens:,} to write, {known}"
        )


@dataclass(frozen=True)
class Question:
    """What a model is asked about every document that is taken in."""

    is_on: Callable[[], bool]
    answered: Answered
    # Whether only those jobs ask it that were told to: no setting says that it may be paid for.
    is_on_request: Callable[[], bool] = lambda: False
    # Told titles and texts.
    estimate: Callable[[Iterable[tuple[str, str]]], Estimate] | None = None


_questions: dict[str, Question] = {}


def register(name: str, question: Question) -> None:
    """Let it be known that models are asked this, whenever it is on."""
    _questions[name] = question


def asked(*, describe: bool) -> frozenset[str]:
    """Return the names of the questions that a job asks; `describe`: it was told to describe."""
    return frozenset(
        name
        for name, question in _questions.items()
        if question.is_on() and (describe or not question.is_on_request())
    )


def description_estimate(texts: Iterable[tuple[str, str]]) -> Estimate | None:
    """Return what it would take to describe documents, given as titles and texts.

    None when they are described unasked, or there is no model.
    """
    question = _questions.get(DESCRIPTION)
    if not question or not question.estimate or not question.is_on():
        return None
    return question.estimate(texts) if question.is_on_request() else None


def open_questions(
    texts: Mapping[str, tuple[str, datetime]], names: Collection[str]
) -> dict[str, frozenset[str]]:
    """Return the names, of those given, of the questions no model has answered about texts.

    Of each text, by whatever key, the digest (`changes.digest`) is given, and when the document
    was stored: what a model answered later does not stand in it.
    """
    open_names: dict[str, set[str]] = {key: set() for key in texts}
    for name in names:
        answered = _questions[name].answered({digest for digest, _ in texts.values()})
        for key, (digest, stored) in texts.items():
            if digest not in answered or answered[digest] > stored:
                open_names[key].add(name)
    return {key: frozenset(names) for key, names in open_names.items()}
