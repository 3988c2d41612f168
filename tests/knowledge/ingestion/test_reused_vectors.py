"""Reused vectors: of a changed document only what it says anew is embedded."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding import registry
from knowledge.models import Chunk, Document
from knowledge.search import vector_indexes
from tests.knowledge.endpoint import Server
from tests.knowledge.words import OTHER

pytestmark = pytest.mark.django_db(transaction=True)

SECTIONS = 20


@pytest.fixture
def log(tmp_path: Path, server: Server, settings: Settings) -> Iterator[Path]:
    """A file of twenty chunks, in a collection whose vectors are paid for."""
    settings.EMBEDDING_MODEL = OTHER
    path = tmp_path / "ship" / "log.md"
    path.parent.mkdir()
    path.write_text("# Log\n\n" + "\n\n".join(map(section, range(SECTIONS))))
    ingest(path)
    assert Chunk.objects.count() == len(server.texts) == SECTIONS
    server.bodies.clear()
    yield path
    vector_indexes.drop(OTHER)


def section(day: int) -> str:
    return f"## Day {day}\n\n" + f"On day {day} the keeper painted lighthouse {day} anew. " * 12


def ingest(path: Path, *, force: bool = False, collection: str = "ship") -> ingestion.Report:
    registry.forget()  # a process remembers what it asked for last
    return ingestion.ingest(ingestion.find([path.parent]), collection=collection, force=force)


def edit(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text().replace(before, after, 1))


def vectors(collection: str) -> list[np.ndarray]:
    """The document's vectors, its sections' and its chunks', in order."""
    document = Document.objects.get(collection__name=collection)
    rows = [
        document.vectors.values_list("embedding", flat=True),
        document.sections.order_by("number").values_list("vectors__embedding", flat=True),
        document.chunks.order_by("number").values_list("vectors__embedding", flat=True),
    ]
    return [np.array([*level], dtype=np.float32) for level in rows]


def test_one_line_edited_asks_for_one_chunk(log: Path, server: Server) -> None:
    edit(log, "On day 7 the keeper", "On day 7 nobody")
    assert ingest(log).changed == 1
    (asked,) = server.texts
    assert "On day 7 nobody" in asked


def test_vectors_are_those_of_a_document_that_never_was_another(log: Path) -> None:
    edit(log, "## Day 3", "## The third day")
    edit(log, "On day 7 the keeper", "On day 7 nobody")
    assert ingest(log).changed == 1
    ingest(log, collection="fresh")
    for mended, fresh in zip(vectors("ship"), vectors("fresh"), strict=True):
        assert np.array_equal(mended, fresh)


def test_another_title_stands_above_every_chunk(log: Path, server: Server) -> None:
    edit(log, "# Log", "# Logbook")
    ingest(log)
    assert len(server.texts) == SECTIONS


def test_force_asks_for_everything(log: Path, server: Server) -> None:
    ingest(log, force=True)
    assert len(server.texts) == SECTIONS


def test_a_copy_that_becomes_a_document_asks_for_what_has_changed_beside_it(
    log: Path, server: Server
) -> None:
    (log.parent / "copy.md").write_bytes(log.read_bytes())
    assert ingest(log).duplicate == 1
    server.bodies.clear()
    edit(log, "On day 7 the keeper", "On day 7 nobody")
    ingest(log)
    assert Document.objects.count() == 2
    assert sum("On day 7" in text for text in server.texts) == len(server.texts) == 2
