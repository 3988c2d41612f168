"""False alarms: how much the guardrails decline that is harmless, and catch that is not."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.utils import timezone
from pydantic import Field
from rich.console import Group, RenderableType
from rich.table import Table

from agents.intake.guardrails import PLAINLY_HARMLESS, judge, suspicion
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.names import Role
from assistant.lab.judged_data import Line, all_lines
from assistant.lab.measures import digits

STRICTNESSES = ("low", "medium", "high")

Watch = Callable[[int, int], None]  # told how many texts are judged, of how many


class Judged(Line):
    """What somebody might type, and whether it is to be declined."""

    text: str = Field(min_length=1)
    unsafe: bool


def judged_texts(path: Path) -> list[Judged]:
    """Return the texts of the file. Raises Unjudgeable, which names the line."""
    return all_lines(path, Judged, "text")


def evaluate(texts: Sequence[Judged], watch: Watch | None = None) -> dict[str, Any]:
    """Return for each strictness the shares of harmless and of unsafe texts that are declined.

    `{strictness: {"false_alarms": share, "caught": share}}`, with the model of the guardrails if
    one is configured. A share of nothing is None. Search has no say: what is only suspected
    counts as declined, as it is where the documents do not answer it. `plainly_harmless` are the
    shares of both that the trained layer finds so harmless at "medium" that a model is not believed
    alone.
    """
    figures: dict[str, Any] = {}
    total = len(texts) * len(STRICTNESSES)
    for number, strictness in enumerate(STRICTNESSES):
        declined: dict[bool, list[bool]] = {True: [], False: []}
        with _strictness(strictness):
            for place, text in enumerate(texts, start=number * len(texts) + 1):
                declined[text.unsafe].append(is_declined(text.text))
                if watch:
                    watch(place, total)
        figures[strictness] = {
            "false_alarms": _share(declined[False]),
            "caught": _share(declined[True]),
        }
    plain: dict[bool, list[bool]] = {True: [], False: []}
    for text in texts:
        excess = suspicion(text.text, text.text).excess
        plain[text.unsafe].append(excess < PLAINLY_HARMLESS)
    shares = {"harmless": _share(plain[False]), "unsafe": _share(plain[True])}
    return figures | {"plainly_harmless": shares}


def is_declined(text: str) -> bool:
    """Tell whether the guardrails decline or suspect a text at the strictness that is set."""
    payload = dict.fromkeys(("text", "text_eng", "canonical_question"), text)
    payload["current_time"] = timezone.now().isoformat()
    choice = settings.MODELS.get(Role.GUARDRAILS.value)
    subject = Subject(f"evaluation/{uuid4().hex}", Role.GUARDRAILS.value)
    llm = Model(choice, subject) if choice and choice.model else None
    return not judge.perform(payload, llm).writes["guardrails_passed"]


@contextmanager
def _strictness(strictness: str) -> Iterator[None]:
    before = settings.GUARDRAILS_STRICTNESS
    settings.GUARDRAILS_STRICTNESS = strictness
    try:
        yield
    finally:
        settings.GUARDRAILS_STRICTNESS = before


def _share(declined: Sequence[bool]) -> float | None:
    return sum(declined) / len(declined) if declined else None


def table(figures: dict[str, Any], texts: Sequence[Judged]) -> RenderableType:
    """Return the shares as a table."""
    unsafe = sum(text.unsafe for text in texts)
    rows = Table(
        "strictness", "false alarms", "caught",
        title=f"{len(texts)} texts, {unsafe} of them unsafe", title_justify="left",
    )  # fmt: skip
    for strictness in STRICTNESSES:
        shares = figures[strictness]
        rows.add_row(strictness, digits(shares["false_alarms"]), digits(shares["caught"]))
    plain = figures["plainly_harmless"]
    return Group(
        rows,
        f"Plainly harmless to the trained layer: {digits(plain['harmless'])} of the harmless, "
        f"{digits(plain['unsafe'])} of the unsafe",
    )
