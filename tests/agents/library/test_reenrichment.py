"""Documents taken in before a model could describe them: the next ingest has it done, once."""

import io
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import pytest
from pytest_django import Settings

from agents.llm.requests import Choice
from knowledge import ingestion
from knowledge.enrichment import by_rules, describe
from knowledge.ingestion.job_vectors import Encoder
from knowledge.ingestion.report import Report
from knowledge.models import Chunk, Document, Relation
from knowledge.parsing import Page
from tests.scripted import Response, Scripted, shaped

MODEL = {"enrichment": Choice("fake@scripted", timeout=5)}
TEXT = "The foghorn sounds twice every thirty seconds. Sailors report a broken one by telephone."
SAID = {
    "description": "When the foghorn sounds.",
    "summary": "It sounds twice.",
    "keypoints": ["Twice."],
    "keywords": ["mist"],
}
OWN = "---\ndescription: My own.\nsummary: Mine.\nkeypoints: [One.]\n---\n\nThe pier is open."
UNEMBEDDED = "what is embedded already is embedded again"


@pytest.fixture
def before(models: Scripted, settings: Settings, tmp_path: Path) -> Scripted:
    """A document was taken in without a model; now there is one."""
    settings.MODELS = settings.MODELS | {"enrichment": Choice()}
    (tmp_path / "island").mkdir()
    (tmp_path / "island" / "fog.md").write_text(TEXT)
    assert take(tmp_path).new == 1
    settings.MODELS = settings.MODELS | MODEL
    models.says("enrichment", shaped(**SAID))
    return models


def take(folder: Path) -> Report:
    return ingestion.ingest(ingestion.find([folder / "island"]), collection="island")


def test_the_next_ingest_describes_it_without_embedding_it(
    before: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError(UNEMBEDDED)

    monkeypatch.setattr(Encoder, "ask_model", refuse)
    assert take(tmp_path).changed == 1
    document = Document.objects.get()
    assert (document.description, document.version) == (SAID["description"], 1)
    assert document.keywords[0] == "mist"
    assert take(tmp_path).unchanged == 1
    assert len(before.server.ledger) == 1


def test_while_the_model_fails_it_is_left_as_it_is_and_asked_about_once_an_ingest(
    before: Scripted, tmp_path: Path
) -> None:
    before.says("enrichment", Response(status=401))
    stored = Document.objects.values().get(), [*Chunk.objects.values()]
    for calls in (1, 2):
        report = take(tmp_path)
        assert report.unchanged == 1
        assert any("the model failed" in each.reason for each in report.warnings)
        assert len(before.server.ledger) == calls
    assert (Document.objects.values().get(), [*Chunk.objects.values()]) == stored
    before.says("enrichment", shaped(**SAID))
    assert take(tmp_path).changed == 1
    assert take(tmp_path).unchanged == 1
    assert Document.objects.get().description == SAID["description"]


def test_a_new_document_that_the_model_failed_over_is_described_by_the_next_ingest(
    before: Scripted, tmp_path: Path
) -> None:
    take(tmp_path)
    before.says("enrichment", Response(status=401))
    (tmp_path / "island" / "pier.md").write_text("The pier is open at night.")
    assert take(tmp_path).new == 1
    before.says("enrichment", shaped(**SAID))
    report = take(tmp_path)
    assert (report.changed, report.unchanged) == (1, 1)
    assert Document.objects.filter(description=SAID["description"]).count() == 2


def test_a_reply_that_came_before_a_crash_is_stored_by_the_next_ingest(
    before: Scripted, tmp_path: Path
) -> None:
    page = Page(TEXT, title="Fog")
    describe(page, by_rules(page))
    assert take(tmp_path).changed == 1
    assert Document.objects.get().description == SAID["description"]
    assert len(before.server.ledger) == 1


def test_a_page_that_says_everything_itself_is_left_alone(before: Scripted, tmp_path: Path) -> None:
    take(tmp_path)
    (tmp_path / "island" / "pier.md").write_text(OWN)
    for _ in range(2):
        take(tmp_path)
    assert take(tmp_path).unchanged == 2
    assert len(before.server.ledger) == 1


def test_relations_are_drawn_of_what_was_there_before(
    before: Scripted, tmp_path: Path, settings: Settings
) -> None:
    take(tmp_path)
    settings.KNOWLEDGE_GRAPH = True
    things: list[dict[str, Any]] = [
        {"name": name, "kind": "other", "aliases": []} for name in ("Sailor", "Horn")
    ]
    tie = {"subject": "Sailor", "predicate": "reports", "object": "Horn", "part": 1}
    ties = [tie | {"valid_from": "", "valid_to": ""}]
    before.says("graph", shaped(entities=things, relations=ties))
    for _ in range(2):
        take(tmp_path)
    assert before.server.prompts() == ["enrichment", "graph"]
    assert Relation.objects.count() == 1
    assert Document.objects.get().description == SAID["description"]


def test_an_archive_uploaded_again_is_described(
    models: Scripted, settings: Settings, tmp_path: Path
) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("fog.md", TEXT)
    models.says("enrichment", shaped(**SAID))
    for model in (Choice(), MODEL["enrichment"], MODEL["enrichment"]):
        settings.MODELS = settings.MODELS | {"enrichment": model}
        ingestion.run(ingestion.plan("island", uploads=[("all.zip", body.getvalue())]).pk)
    assert Document.objects.get().description == SAID["description"]
    assert len(models.server.ledger) == 1
