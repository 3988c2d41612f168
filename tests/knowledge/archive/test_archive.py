"""Archives: what comes out of one collection goes into another, and nothing else does."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from knowledge import embedding
from knowledge.archive import contents, export, restore
from knowledge.archive.contents import Entry
from knowledge.archive.restore import CollectionDiffers, put
from knowledge.embedding.local import LOCAL
from knowledge.errors import EmbeddingUnavailable, InvalidCollectionName
from knowledge.graph import graph_search
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    Document,
    Entity,
    GoldenQuestion,
    Receipt,
    SectionVector,
)
from knowledge.search import search, vector_indexes
from tests.knowledge.islands import OTHER, PAGES, add, entry, noise, rows

# An export sees one moment, which takes a transaction of its own.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is embedded from now on."""
    texts: list[str] = []
    encode = LOCAL.encode

    def recording(batch: Any, **options: Any) -> embedding.Vectors:
        texts.extend(batch)
        return encode(batch, **options)

    monkeypatch.setattr(LOCAL, "encode", recording)
    return texts


def passages_for(question: str, collection: str) -> list[tuple[str, str, float]]:
    results = search(question, collections=[collection])
    return [(passage.source, passage.text, passage.score) for passage in results.passages]


def test_a_collection_comes_back_with_the_same_rows_and_answers_and_nothing_is_embedded(
    island: Collection, archive: Path, encoded: list[str]
) -> None:
    questions = ["Who plays the foghorn?", "What does a tandem cost?", "keys of the lighthouse"]
    before = rows(island), [passages_for(question, "island") for question in questions]
    encoded.clear()
    Collection.objects.all().delete()
    restored = restore(archive)
    assert encoded == []
    assert (restored.new, restored.chunks, restored.embedded) == (4, 8, 0)
    assert restored.remarks == []
    back = Collection.objects.get(name="island")
    assert (back.title, back.description) == ("The island", "Small.")
    assert all(before[0].values())
    assert (rows(back), [passages_for(question, "island") for question in questions]) == before


def test_it_can_go_under_another_name_beside_the_first(island: Collection, archive: Path) -> None:
    restore(archive, name="copy")
    assert rows(Collection.objects.get(name="copy")) == rows(island)


def test_what_documents_state_is_found_in_the_copy_with_its_time_and_place(
    island: Collection, archive: Path
) -> None:
    restore(archive, name="copy")
    (relation,) = graph_search(["Skerry"], collections=["copy"], limit=1)
    assert (relation.subject_kind, relation.predicate, relation.object) == (
        "page",
        "is about",
        "The island",
    )
    chunk = Chunk.objects.get(pk=relation.chunk_id)
    assert (chunk.document_id, chunk.number) == (relation.document_id, 2)
    assert chunk.document.collection.name == "copy"
    published = graph_search(["ferry.md"], collections=["copy"], at=date(2030, 1, 1))
    assert [(each.subject_kind, each.predicate) for each in published] == [
        ("organisation", "publishes")
    ]


def test_a_replaced_document_leaves_no_entity_that_only_it_named(
    island: Collection, archive: Path
) -> None:
    fog = entry("fog.md", ["The foghorn was sold."], version=3)
    buyer = contents.Entity(name="Buyer", kind="person", names=["Buyer"])
    record = fog.document.model_copy(update={"entities": [buyer], "relations": []})
    add(island, Entry(record, fog.versions, {}))
    assert Entity.objects.filter(name="Buyer").exists()
    restore(archive, replace=True)
    assert not Entity.objects.filter(name="Buyer").exists()


def test_a_second_import_changes_nothing(island: Collection, archive: Path) -> None:
    before = list(Chunk.objects.order_by("pk").values_list("pk", flat=True))
    restored = restore(archive)
    assert (restored.unchanged, restored.new, restored.chunks) == (4, 0, 0)
    assert list(Chunk.objects.order_by("pk").values_list("pk", flat=True)) == before


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_import_goes_on_where_it_was(
    island: Collection, archive: Path, after: int
) -> None:
    before = rows(island)
    Collection.objects.all().delete()

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "importing" and done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(archive, watch=interrupt)
    assert Document.objects.count() == after
    restored = restore(archive)
    assert (restored.unchanged, restored.new) == (after, 4 - after)
    assert rows(Collection.objects.get(name="island")) == before


def test_only_what_came_without_vectors_is_embedded_and_it_is_said(
    island: Collection, tmp_path: Path, encoded: list[str]
) -> None:
    SectionVector.objects.filter(section__document__source="fog.md", model=LOCAL.name).delete()
    export(island, tmp_path / "part.docent")
    Collection.objects.all().delete()
    restored = restore(tmp_path / "part.docent")
    assert [text.splitlines()[-1] for text in encoded] == PAGES["fog.md"]
    assert (restored.new, restored.embedded) == (4, 2)
    assert restored.remarks == [
        f"The archive holds no vectors of {LOCAL.name} for 1 documents: these were embedded."
    ]
    assert ChunkVector.objects.filter(model=LOCAL.name).count() == 8


def test_vectors_that_could_not_be_made_are_made_by_the_next_import(
    island: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SectionVector.objects.filter(section__document__source="fog.md", model=LOCAL.name).delete()
    export(island, tmp_path / "part.docent")
    Collection.objects.all().delete()

    def fail(*_: Any, **__: Any) -> embedding.Vectors:
        raise EmbeddingUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(LOCAL, "encode", fail)
        with pytest.raises(EmbeddingUnavailable):
            restore(tmp_path / "part.docent")
    restored = restore(tmp_path / "part.docent")
    assert (restored.new, restored.unchanged, restored.embedded) == (0, 4, 2)
    assert ChunkVector.objects.filter(model=LOCAL.name).count() == 8


def test_the_model_of_a_collection_that_is_there_stays(
    island: Collection, archive: Path, encoded: list[str]
) -> None:
    """Only `reindex` changes it: here to one the archive holds vectors of."""
    Collection.objects.all().delete()
    Collection.objects.create(name="island", embedding_model=OTHER)
    restored = restore(archive)
    assert Collection.objects.get(name="island").embedding_model == OTHER
    assert (restored.embedded, encoded) == (0, [])
    assert vector_indexes.is_valid(vector_indexes.name("chunk", OTHER))
    vector_indexes.drop(OTHER)


def test_a_collection_that_differs_is_left_alone_unless_it_is_to_be_replaced(
    island: Collection, archive: Path
) -> None:
    before = rows(island)
    add(island, entry("fog.md", ["The foghorn was sold."], version=3))
    add(island, entry("new.md", ["There is snow now."]))
    GoldenQuestion.objects.filter(sources=[]).delete()
    fog = island.documents.get(source="fog.md").pk
    changed = rows(island)
    with pytest.raises(CollectionDiffers, match=r"2 of its documents .* 'fog.md'.*--replace"):
        restore(archive)
    assert rows(island) == changed
    restored = restore(archive, replace=True)
    assert (restored.replaced, restored.removed, restored.unchanged) == (1, 1, 3)
    assert rows(island) == before
    assert island.documents.get(source="fog.md").pk == fog
    assert [each["source"] for each in Receipt.objects.get().documents] == ["new.md"]


def test_an_export_shows_one_moment_whatever_is_stored_meanwhile(
    island: Collection, tmp_path: Path
) -> None:
    before = rows(island)

    def meddle() -> None:
        add(island, entry("late.md", ["It came late."]))
        island.documents.filter(source="rooms.md").delete()
        connection.close()

    def watch(done: int, total: int) -> None:
        if done == 1:
            with ThreadPoolExecutor(1) as other:
                other.submit(meddle).result()

    export(island, tmp_path / "moment.docent", watch=watch)
    restore(tmp_path / "moment.docent", name="moment")
    assert rows(Collection.objects.get(name="moment")) == before
    assert island.documents.filter(source="late.md").exists()


def test_an_export_that_fails_leaves_what_was_there(island: Collection, archive: Path) -> None:
    before = archive.read_bytes()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(island, archive, watch=interrupt)
    assert archive.read_bytes() == before
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_memory_does_not_grow_with_the_collection(tmp_path: Path) -> None:
    """Four times the documents, of 40 kB each, in much less than four times the memory."""
    small, peaks = "small@acme", []
    for size in (10, 40):
        pile = Collection.objects.create(name=f"pile-{size}", embedding_model=small)
        for place in range(size):
            put(pile, noise(entry(f"{place}.md", ["Fog is wet. " * 800] * 4), small, 384))
        tracemalloc.start()
        export(pile, tmp_path / f"{size}.docent")
        exported = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        restore(tmp_path / f"{size}.docent", name=f"back-{size}")
        peaks.append((exported, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    vector_indexes.drop(small)
    few, many = peaks
    assert many[0] < 2 * few[0]
    assert many[1] < 2 * few[1]


def test_a_name_that_cannot_be_a_collections_is_refused(archive: Path) -> None:
    with pytest.raises(InvalidCollectionName):
        restore(archive, name="No Slug")


def run(*arguments: object) -> str:
    out = StringIO()
    call_command(*map(str, arguments), stdout=out)
    return " ".join(out.getvalue().split())


def test_the_commands_say_what_they_did(island: Collection, tmp_path: Path) -> None:
    path = tmp_path / "island.docent"
    output = run("export", "island", path)
    assert "documents │ 4 │" in output
    assert "relations │ 8 │" in output
    assert f"vectors of {LOCAL.name} │ 384 dimensions │" in output
    output = run("import", path, "--collection", "copy")
    assert "Collection copy" in output
    assert "new │ 4 │" in output
    assert "chunks embedded │ 0 │" in output


def test_the_commands_say_what_cannot_be(island: Collection, archive: Path) -> None:
    with pytest.raises(CommandError, match=r"exists: name another file, or .* --replace"):
        run("export", "island", archive)
    with pytest.raises(CommandError, match="no collection 'nowhere'"):
        run("export", "nowhere", archive.with_name("new.docent"))
    with pytest.raises(CommandError, match="cannot be written: No such file or directory"):
        run("export", "island", archive.parent / "nowhere" / "x.docent")
    with pytest.raises(CommandError, match="no such file"):
        run("import", archive.with_name("missing.docent"))
    run("export", "island", archive, "--replace")
