"""Analysing: whole turns on the route of analyses, whose models follow a script."""

from pathlib import Path
from typing import Any

from agents.models import Envelope
from agents.names import ANALYSTS
from assistant.lab import scripted_analysis
from assistant.lab.scripted_analysis import ENGLISH, Case
from knowledge import ingestion
from tests.agents.turning import turn
from tests.sensible import Sensible


def learn(case: Case, folder: Path) -> None:
    for name, text in case.pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    ingestion.ingest(ingestion.find([folder]), collection=case.language)


def play(models: Sensible, case: Case, steps: list[list[str]] | None = None) -> None:
    for prompt, reply in scripted_analysis.replies(case, steps).items():
        models.says(prompt, reply)


def analysed(case: Case = ENGLISH) -> Envelope:
    return turn(case.question, collections=[case.language])


def asked(models: Sensible) -> list[str]:
    """The prompts of the route that were sent, in order."""
    names = {*map(str, ANALYSTS), "synthesis", "form"}
    return [call.prompt for call in models.server.ledger if call.prompt in names]


def given(envelope: Envelope, role: str) -> dict[str, Any]:
    result: dict[str, Any] = envelope.payload["agent_outputs"][role]["result"]
    return result
