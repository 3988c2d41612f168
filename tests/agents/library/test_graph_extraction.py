"""Relations that a model finds in documents: drawn in ingestion, found by name, gone with it."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from agents.library.graph_extraction import day
from agents.llm.requests import Choice
from knowledge import ingestion
from knowledge.graph import graph_search
from knowledge.ingestion import removal
from knowledge.ingestion.report import Report
from knowledge.models import Document, Entity, EntityName, Relation
from tests import factories
from tests.scripted import Call, Response, Scripted, shaped

TEXT = """---
title: Fog
---

The harbour office keeps the foghorn in order. Since March 2024 the Keepers' Guild pays for it."""


def thing(name: str, kind: str = "organisation", *aliases: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "aliases": list(aliases)}


def tie(subject: str, predicate: str, whom: str, **changes: Any) -> dict[str, Any]:
    relation = {"subject": subject, "predicate": predicate, "object": whom}
    return relation | {"valid_from": "", "valid_to": "", "part": 1} | changes


OFFICE, HORN = thing("Harbour Office", "organisation", "harbour master"), thing("foghorn", "system")
GUILD = thing("Keepers' Guild")
KEEPS = tie("Harbour Office", "keeps in order", "foghorn")
PAYS = tie("Keepers' Guild", "pays for", "foghorn", valid_from="2024-03")


@pytest.fixture
def drawing(models: Scripted, settings: Settings) -> Scripted:
    """A model draws a graph of each document; other descriptions of it fail."""
    settings.MODELS = settings.MODELS | {"enrichment": Choice("fake@scripted", timeout=5)}
    settings.KNOWLEDGE_GRAPH = True
    models.says("graph", shaped(entities=[OFFICE, HORN, GUILD], relations=[KEEPS, PAYS]))
    models.says("enrichment", Response(status=401))
    return models


def take(folder: Path, collection: str = "island", *, force: bool = False, **pages: str) -> Report:
    """Ingest these pages, and no others, as a collection."""
    for path in folder.glob("*.md"):
        path.unlink()
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    return ingestion.ingest(ingestion.find([folder]), collection=collection, force=force)


def known(query: str | list[str], **options: Any) -> list[tuple[str, str, str]]:
    return [(each.subject, each.predicate, each.object) for each in graph_search(query, **options)]


def test_relations_are_found_by_a_name_an_alias_or_a_question(
    drawing: Scripted, tmp_path: Path
) -> None:
    take(tmp_path, fog=TEXT)
    keeps = ("Harbour Office", "keeps in order", "foghorn")
    pays = ("Keepers' Guild", "pays for", "foghorn")
    assert known(["HARBOUR  office"]) == [keeps]
    assert known(["harbour master"]) == [keeps]
    assert known(["Keepers’ Guild"]) == [pays]
    assert set(known("Who repairs the foghorn?")) == {keeps, pays}
    assert known("Who repairs the foghorns?") == []
    assert known("What does the harbour office do with the foghorn?")[0] == keeps


def test_evidence_is_the_chunk_that_says_so(drawing: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    (found,) = graph_search(["Harbour Office"])
    document = Document.objects.get()
    assert found.document_id == document.pk
    assert found.chunk_id == document.chunks.get(number=1).pk


def test_what_does_not_hold_on_a_day_is_left_out(drawing: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    assert len(known(["foghorn"], at=date(2024, 3, 1))) == 2
    assert len(known(["foghorn"], at=date(2024, 2, 29))) == 1


def test_only_the_collections_asked_for_are_searched(drawing: Scripted, tmp_path: Path) -> None:
    take(tmp_path, "island", fog=TEXT)
    take(tmp_path, "mainland", fog=TEXT)
    assert len(known(["Harbour Office"])) == 2
    assert len(known(["Harbour Office"], collections=["island"])) == 1
    assert len(known(["foghorn"], limit=3)) == 3


def test_documents_that_name_the_same_thing_share_it(drawing: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT, horn=TEXT.replace("order", "good order"))
    assert Entity.objects.count() == 3
    assert Relation.objects.count() == 4


def test_a_deleted_document_leaves_nothing_that_only_it_named(
    drawing: Scripted, tmp_path: Path
) -> None:
    def drawn(call: Call) -> Response:
        if "painted" in call.user:
            return shaped(entities=[thing("The foghorn", "system"), HORN], relations=[])
        return shaped(entities=[OFFICE, HORN, GUILD], relations=[KEEPS, PAYS])

    drawing.says("graph", drawn)
    take(tmp_path, fog=TEXT, horn="---\ntitle: Horn\n---\n\nThe foghorn was painted red in May.")
    receipt = removal.delete(Document.objects.filter(title="Fog"))
    assert receipt.removed["relations"] == 2
    assert set(Entity.objects.values_list("name", flat=True)) == {"foghorn", "The foghorn"}
    assert not Relation.objects.exists()
    assert known(["harbour master"]) == []
    assert not any(factories.rows_left([each["id"] for each in receipt.documents]).values())


def test_a_changed_document_states_what_it_says_now(drawing: Scripted, tmp_path: Path) -> None:
    take(tmp_path, fog=TEXT)
    drawing.says("graph", shaped(entities=[GUILD, HORN], relations=[PAYS]))
    take(tmp_path, fog=f"{TEXT} Nobody else does.")
    assert known("foghorn") == [("Keepers' Guild", "pays for", "foghorn")]
    assert not EntityName.objects.filter(key="harbour master").exists()


def test_taking_in_the_same_text_again_asks_and_changes_nothing(
    drawing: Scripted, tmp_path: Path
) -> None:
    take(tmp_path, fog=TEXT)
    take(tmp_path, fog=TEXT, force=True)
    assert drawing.server.prompts().count("graph") == 1
    assert Relation.objects.count() == 2


def test_relations_without_an_entity_or_a_chunk_are_left_out(
    drawing: Scripted, tmp_path: Path
) -> None:
    lost = [tie("Nobody", "owns", "foghorn"), tie("Harbour Office", "owns", "foghorn", part=9)]
    drawing.says("graph", shaped(entities=[OFFICE, HORN], relations=[*lost, KEEPS, KEEPS]))
    take(tmp_path, fog=TEXT)
    assert known("foghorn") == [("Harbour Office", "keeps in order", "foghorn")]


def test_off_by_default_nobody_is_asked(
    drawing: Scripted, settings: Settings, tmp_path: Path
) -> None:
    settings.KNOWLEDGE_GRAPH = False
    take(tmp_path, fog=TEXT)
    assert "graph" not in drawing.server.prompts()
    assert not Entity.objects.exists()


@pytest.mark.parametrize("model", [Choice("fake@scripted", timeout=5), Choice()])
def test_without_a_usable_reply_rules_read_the_document_and_the_job_says_why(
    drawing: Scripted, settings: Settings, tmp_path: Path, model: Choice
) -> None:
    settings.MODELS = settings.MODELS | {"enrichment": model}
    drawing.says("graph", Response("no"))
    report = take(tmp_path, fog=f"{TEXT}\n\n\u201cHaze\u201d means visibility below two miles.")
    warnings = [each.reason for each in report.warnings if "relations" in each.reason]
    assert all("by rules alone, the model failed" in each for each in warnings)
    assert len(warnings) == (1 if model.model else 0)
    (found,) = graph_search("haze", collections=["island"])
    assert (found.predicate, found.object_kind) == ("defines", "term")


@pytest.mark.parametrize(
    ("said", "is_last", "found"),
    [
        ("2024", False, date(2024, 1, 1)),
        ("2024", True, date(2024, 12, 31)),
        ("2024-02", True, date(2024, 2, 29)),
        ("2024-02-10", True, date(2024, 2, 10)),
        ("2024-13", False, None),
        ("2023-02-29", False, None),
        ("0000", False, None),
        ("", False, None),
    ],
)
def test_times_are_days(said: str, is_last: bool, found: date | None) -> None:
    assert day(said, is_last=is_last) == found
