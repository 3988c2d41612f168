"""Answerability: whether search knows when it doesn't know."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from assistant.lab.judged_data import Line, Unjudgeable, read_lines
from assistant.lab.measures import area_under_curve, detection, digits
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
    questions = []
    for number, question in read_lines(path, Question):
        if not question.question.strip():
            raise Unjudgeable(f"{path}, line {number}: 'question' is empty.")
        questions.append(question)
    if len({question.answerable for question in questions}) < 2:
        raise Unjudgeable(f"{path}: it takes questions that can be answered and others.")
    return questions


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
    for number, question in enumerate(questions, start=1):
        answers.append(ask(question, collections))
        if watch:
            watch(number, len(questions))
    return figures(answers)


def ask(question: Question, collections: Sequence[str]) -> Answer:
    """Search for one question."""
    results = search(question.question, collections=collections)
    if results.error:
        raise Unjudgeable(results.error)
    confidence, threshold = results.stats["confidence"], results.stats["threshold"]
    if confidence is None:
        raise Unjudgeable("There is nothing in these collections that could be searched.")
    return Answer(question.answerable, confidence - threshold, results.no_context, threshold)


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of these answers."""
    able = [answer.confidence for answer in answers if answer.answerable]
    unable = [answer.confidence for answer in answers if not answer.answerable]
    shift, _ = best_threshold(able, unable)
    truth = [not answer.answerable for answer in answers]
    best = detection([answer.confidence < shift for answer in answers], truth)
    return {
        "questions": len(answers),
        "answerable": len(able),
        "thresholds": sorted({round(answer.threshold, 4) for answer in answers}),
        "auc": area_under_curve(able, unable),
        "no_context": asdict(detection([answer.no_context for answer in answers], truth)),
        "best": asdict(best) | {"shift": round(shift, 4)},
    }


def table(figures: dict[str, Any]) -> RenderableType:
    """Return how well the two kinds of questions are parted."""
    unable = figures["questions"] - figures["answerable"]
    rows = Table(
        "no_context", "precision", "recall", "F1",
        title=f"{figures['questions']} questions, {unable} of them without an answer",
        title_justify="left",
    )  # fmt: skip
    for name, part in (("as it is said", "no_context"), ("at best", "best")):
        rows.add_row(name, *(digits(figures[part][key]) for key in ("precision", "recall", "f1")))
    thresholds = ", ".join(map(digits, figures["thresholds"]))
    return Group(
        rows,
        f"Area under the curve of the confidence: {digits(figures['auc'])}",
        f"Threshold: {thresholds}; at best {figures['best']['shift']:+.3f}",
    )
