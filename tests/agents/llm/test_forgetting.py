"""What a document said is not answered with once the document changed or is gone."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.llm.requests import Choice
from agents.models import ModelCall
from knowledge import ingestion
from knowledge.ingestion import removal
from knowledge.models import Document
from prompts.prompt import Prompt
from tests.scripted import Scripted, shaped

Ask = Callable[[], None]


class Verdict(BaseModel):
    """The shape of the reply."""

    sufficient: bool


@pytest.fixture
def fog(transactional_db: None, tmp_path: Path) -> Path:
    """A collection of two documents, and the folder they come from."""
    for name in ("fog", "rain"):
        (tmp_path / f"{name}.md").write_text(f"The {name} horn sounds twice every thirty seconds.")
    take(tmp_path)
    return tmp_path


def take(folder: Path) -> None:
    ingestion.ingest(ingestion.find([folder]), collection="island")


@pytest.fixture
def ask(fog: Path, models: Scripted, probe: Prompt) -> Ask:
    """Ask the same of the passage of the document about fog, in another step each time."""
    models.says("probe", shaped(sufficient=True))
    (document,) = Document.objects.filter(title="Fog").values_list("pk", flat=True)
    steps = iter(range(9))

    def again() -> None:
        subject = Subject(f"test/{next(steps)}", "evaluator", owner="user:1/")
        choice = Choice("fake@scripted", timeout=5)
        llm = Model(choice, subject, fresh=timedelta(hours=1))
        llm.ask(probe, Verdict, documents=(document,), question="When?", hour="noon")

    return again


def test_an_equal_question_is_answered_from_before(ask: Ask, models: Scripted) -> None:
    ask()
    ask()
    assert len(models.server.ledger) == 1


def test_after_the_document_was_deleted_the_model_is_asked_again(
    ask: Ask, models: Scripted
) -> None:
    ask()
    removal.delete(Document.objects.filter(title="Fog"))
    ask()
    assert len(models.server.ledger) == 2


def test_after_the_document_changed_the_model_is_asked_again(
    ask: Ask, models: Scripted, fog: Path
) -> None:
    ask()
    (fog / "fog.md").write_text("The fog horn sounds three times every thirty seconds.")
    take(fog)
    ask()
    assert len(models.server.ledger) == 2


def test_what_quoted_other_documents_is_used_again(ask: Ask, models: Scripted) -> None:
    ask()
    removal.delete(Document.objects.filter(title="Rain"))
    ask()
    assert len(models.server.ledger) == 1


def test_the_trace_keeps_what_a_turn_was_answered(ask: Ask) -> None:
    ask()
    removal.delete(Document.objects.all())
    call = ModelCall.objects.get()
    assert call.reply
    assert call.request["messages"]
