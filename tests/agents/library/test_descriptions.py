"""Documents described by a model: one call per text, what they say themselves kept, no failure."""

from decimal import Decimal
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from agents.library import descriptions
from agents.llm.requests import Choice
from agents.models import ModelCall, Price
from knowledge import ingestion, model_calls
from knowledge.enrichment import by_rules, describe
from knowledge.ingestion import removal
from knowledge.ingestion.report import Report
from knowledge.models import Document
from knowledge.parsing import Page
from tests.scripted import Response, Scripted, shaped

TEXT = "The foghorn sounds twice every thirty seconds. Sailors report a broken one by telephone."
SAID = {
    "description": "When the foghorn sounds.",
    "summary": "It sounds twice, every thirty seconds.",
    "keypoints": ["It sounds twice."],
    "keywords": ["Foghorn", "broken horn", "fog"],
}


@pytest.fixture
def described(models: Scripted, settings: Settings) -> Scripted:
    """A model describes documents."""
    settings.MODELS = settings.MODELS | {"enrichment": Choice("fake@scripted", timeout=5)}
    models.says("enrichment", shaped(**SAID))
    return models


def take(folder: Path, *, force: bool = False, **pages: str) -> Report:
    """Ingest these pages, and no others, as a collection."""
    for path in folder.glob("*.md"):
        path.unlink()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    discovered = ingestion.find([folder])
    return ingestion.ingest(discovered, collection="island", force=force)


def test_a_new_document_is_described_by_the_model(described: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    document = Document.objects.get()
    assert document.description == SAID["description"]
    assert document.summary == SAID["summary"]
    assert document.keypoints == SAID["keypoints"]
    assert document.keywords[:4] == ["foghorn", "broken", "horn", "fog"]
    assert len(document.keywords) <= 12
    (call,) = described.server.ledger
    assert TEXT in call.user


@pytest.fixture
def on_request(described: Scripted, settings: Settings) -> Scripted:
    """A model that only GEN_MODEL names."""
    settings.DESCRIBE_ON_REQUEST = True
    return described


def commanded(*words: str) -> str:
    """Return what `ingest` prints, blanks and line breaks alike."""
    out = StringIO()
    call_command("ingest", *words, stdout=out)
    return " ".join(out.getvalue().split())


def test_a_model_that_nobody_named_for_documents_is_asked_only_when_it_is_told_to(
    on_request: Scripted, tmp_path: Path
) -> None:
    (tmp_path / "fog.md").write_text(TEXT)
    Price.objects.create(model="fake@scripted", input_per_million=1, output_per_million=10)
    printed = commanded(str(tmp_path))
    assert not on_request.server.ledger
    assert Document.objects.get().summary != SAID["summary"]
    assert "With --describe: 1 call of fake@scripted, about " in printed
    assert "--describe" not in commanded(str(tmp_path), "--describe")
    assert len(on_request.server.ledger) == 1
    assert Document.objects.get().summary == SAID["summary"]


def test_the_estimate_is_near_what_is_counted_and_above_what_it_costs(
    on_request: Scripted, tmp_path: Path
) -> None:
    Price.objects.create(model="fake@scripted", input_per_million=1, output_per_million=10)
    estimate = model_calls.description_estimate([("Fog", TEXT * 20), ("Bell", "A bell rings.")])
    assert estimate is not None
    assert (estimate.documents, estimate.most_tokens) == (2, 2000)
    (tmp_path / "fog.md").write_text(f"# Fog\n\n{TEXT * 20}")
    (tmp_path / "bell.md").write_text("# Bell\n\nA bell rings.")
    commanded(str(tmp_path), "--describe")
    calls = list(ModelCall.objects.all())
    counted = sum(call.input_tokens or 0 for call in calls)
    assert estimate.tokens == pytest.approx(counted, rel=0.1)
    assert (estimate.cost or 0) > sum(call.cost or 0 for call in calls)


def test_a_model_that_is_named_for_documents_is_asked_without_a_word_about_it(
    described: Scripted, tmp_path: Path
) -> None:
    (tmp_path / "fog.md").write_text(TEXT)
    assert "--describe" not in commanded(str(tmp_path))
    assert len(described.server.ledger) == 1


def test_what_a_document_says_of_itself_is_kept(described: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=f"---\ndescription: My own.\ntags: [mist]\n---\n\n{TEXT}")
    document = Document.objects.get()
    assert document.description == "My own."
    assert document.keywords[0] == "mist"
    assert document.summary == SAID["summary"]


def test_the_same_text_is_paid_for_once(described: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    take(tmp_path, fog=TEXT, force=True)
    take(tmp_path, fog=TEXT)
    assert len(described.server.ledger) == 1
    assert Document.objects.get().summary == SAID["summary"]


def test_who_was_killed_after_the_reply_does_not_pay_again(described: Scripted) -> None:
    page = Page(TEXT, title="Fog")
    for _ in range(2):
        assert describe(page, by_rules(page)).summary == SAID["summary"]
    assert len(described.server.ledger) == 1


def test_a_changed_document_is_described_anew(described: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    take(tmp_path, fog=f"{TEXT} It was painted.")
    assert len(described.server.ledger) == 2


@pytest.mark.parametrize(
    "said",
    [Response("no"), Response(status=401), Response(reset=True), shaped(summary="Only this.")],
)
def test_without_a_usable_reply_its_own_words_describe_it_and_the_job_says_so(
    described: Scripted, tmp_path: Path, said: Response
) -> None:
    described.says("enrichment", said)
    report = take(tmp_path, fog=TEXT)
    assert report.new == 1
    document = Document.objects.get()
    assert document.description == "The foghorn sounds twice every thirty seconds."
    assert any("described by its own words" in each.reason for each in report.warnings)


def test_without_a_model_nobody_is_asked_and_nothing_is_said(
    models: Scripted, settings: Settings, tmp_path: Path
) -> None:
    settings.MODELS = settings.MODELS | {"enrichment": Choice()}
    assert [each.reason for each in take(tmp_path, fog=TEXT).warnings] == ["no front matter"]
    assert models.server.ledger == []


def test_of_a_long_document_the_beginning_and_the_headings_are_read(described: Scripted) -> None:
    sections = "".join(f"\n\n## Part {number}\n\n" + "It rains. " * 300 for number in range(20))
    page = Page(f"# Fog{sections}", title="Fog")
    describe(page, by_rules(page))
    (call,) = described.server.ledger
    assert "Part 19" in call.user
    assert len(call.user) < descriptions.BEGINNING + descriptions.OUTLINE + 500


def test_its_cost_stands_under_enrichment(described: Scripted, tmp_path: Path) -> None:
    Price.objects.create(model="fake@scripted", input_per_million=10, output_per_million=10)
    take(tmp_path, fog=TEXT)
    call = ModelCall.objects.get()
    assert (call.role, call.owner, call.envelope) == ("enrichment", "", None)
    assert call.cost is not None
    assert call.cost > Decimal(0)


def test_nothing_of_a_deleted_document_stays_with_the_calls_made_for_it(
    described: Scripted, tmp_path: Path
) -> None:
    take(tmp_path, fog=TEXT)
    take(tmp_path, fog=f"{TEXT} It was painted.")
    removal.delete(Document.objects.all())
    assert ModelCall.objects.count() == 2
    for call in ModelCall.objects.all():
        assert (call.request, call.reply, call.reusable) == ({}, "", False)
        assert call.input_tokens
    take(tmp_path, fog=TEXT)
    assert len(described.server.ledger) == 3
