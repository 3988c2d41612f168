"""Answerability: whether search knows when it doesn't know."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from assistant.lab.judged_folder import Line, Unjudgeable, read
from assistant.lab.ranking import area_under_curve, detection
from knowledge.calibration import best_threshold
from knowledge.search import search

Watch = Callable[[int, int], None]  # told how many questions are asked, of how many


class Question(Line):
    """A question, and whether what is searched holds an answer."""

    question: str = Field(min_length=1)
    answerable: bool


@dataclass(frozen=True)
class Answer:
    """What search thought of one question."""

    answerable: bool
    confidence: float  # above the threshold; below it negative
    no_context: bool
    threshold: float


def questions_of(path: Path) -> list[Question]:
    """Return the questions of the file. Raises Unjudgeable, which names the line."""
    found = []
    for number, each in read(path, Question):
        if not each.question.strip():
            raise Unjudgeable(f"{path}, line {number}: 'question' is empty.")
        found.append(each)
    if len({each.answerable for each in found}) < 2:
        raise Unjudgeable(f"{path}: it takes questions that can be answered and others.")
    return found


def evaluate(
    questions: Sequence[Question], collections: Sequence[str], watch: Watch | None = None
) -> dict[str, Any]:
    """Return how well confidence tells answerable questions from others.

    `auc` is the share of pairs in which the answerable question has the higher confidence.
    `no_context` is what search says with the thresholds it has, `best` what it would say were
    they shifted to where they part these questions best (Youden's J), known only afterwards;
    both as precision and recall of the questions that cannot be answered. Raises
    UnknownCollection, and Unjudgeable when questions cannot be embedded.
    """
    answers = []
    for number, each in enumerate(questions, start=1):
        answers.append(ask(each, collections))
        if watch:
            watch(number, len(questions))
    return figures(answers)


def ask(question: Question, collections: Sequence[str]) -> Answer:
    """Search for one question."""
    found = search(question.question, collections=collections)
    if found.error:
        raise Unjudgeable(found.error)
    sure, threshold = found.stats["confidence"], found.stats["threshold"]
    if sure is None:
        raise Unjudgeable("There is nothing in these collections that could be searched.")
    return Answer(question.answerable, sure - threshold, found.no_context, threshold)


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of what was asked."""
    able = [each.confidence for each in answers if each.answerable]
    unable = [each.confidence for each in answers if not each.answerable]
    shift, _ = best_threshold(able, unable)
    true = [not each.answerable for each in answers]
    best = detection([each.confidence < shift for each in answers], true)
    return {
        "questions": len(answers),
        "answerable": len(able),
        "thresholds": sorted({round(each.threshold, 4) for each in answers}),
        "auc": area_under_curve(able, unable),
        "no_context": asdict(detection([each.no_context for each in answers], true)),
        "best": asdict(best) | {"shift": round(shift, 4)},
    }
