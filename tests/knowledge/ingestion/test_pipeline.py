"""Ingestion: the collection follows the files, and nothing else is touched."""

import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from django.db import connection
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding.local import LOCAL
from knowledge.errors import InvalidCollectionName, NothingToIngest
from knowledge.ingestion import Problem, Report, pipeline
from knowledge.models import Chunk, ChunkVector, Collection, Document
from knowledge.tokens import WINDOW

pytestmark = pytest.mark.django_db


def ingest(*paths: Path, collection: str = "island", **options: Any) -> Report:
    return ingestion.ingest(ingestion.find(paths), collection=collection, **options)


def reasons(problems: Iterable[Problem]) -> dict[str, str]:
    return {problem.source: problem.reason for problem in problems}


def sources() -> list[str]:
    return sorted(Document.objects.values_list("source", flat=True))


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let nothing be embedded: whoever tries has done work that wasn't needed."""

    def refuse(texts: Sequence[str], **_: Any) -> NoReturn:
        raise AssertionError(f"embedded {len(texts)} texts")

    def arrange() -> None:
        monkeypatch.setattr(LOCAL, "encode", refuse)

    return arrange


def test_every_file_becomes_a_document_with_chunks_and_vectors(island: Path) -> None:
    report = ingest(island)
    assert report.new == 4
    assert sources() == [
        "island/ferry-booking.md",
        "island/fog.txt",
        "island/rooms/lighthouse.md",
        "island/rooms/quiet-hours.html",
    ]
    assert report.chunks == Chunk.objects.count() == ChunkVector.objects.count()
    ferry = Document.objects.get(source="island/ferry-booking.md")
    assert (ferry.title, ferry.version, ferry.language) == ("Booking a ferry", 1, "en")
    assert [chunk.section.path for chunk in ferry.chunks.all()] == [
        [],
        ["Cancel a booking"],
        ["Take a bicycle"],
    ]
    assert (
        ferry.chunks.get(number=3).text
        == "- Bicycle: Folding; Price: free\n- Bicycle: Tandem; Price: 12 €"
    )
    assert Document.objects.get(source="island/rooms/lighthouse.md").crumbs == ["Rooms"]
    assert Document.objects.get(source="island/fog.txt").title == "Fog"


def test_chunks_are_numbered_measured_and_within_the_window(island: Path) -> None:
    ingest(island)
    for document in Document.objects.all():
        chunks = list(document.chunks.all())
        assert [chunk.number for chunk in chunks] == list(range(1, len(chunks) + 1))
        assert all(2 < chunk.tokens <= WINDOW for chunk in chunks)
        assert all(len(chunk.keywords) <= 12 for chunk in chunks)


def test_unchanged_files_touch_nothing_and_load_no_model(
    island: Path, no_model: Callable[[], None]
) -> None:
    ingest(island)
    before = list(Document.objects.values()), list(Chunk.objects.values())
    no_model()
    report = ingest(island)
    assert (report.unchanged, report.new, report.changed, report.chunks) == (4, 0, 0, 0)
    assert (list(Document.objects.values()), list(Chunk.objects.values())) == before


def test_folder_may_move_without_becoming_new(
    island: Path, no_model: Callable[[], None], tmp_path: Path
) -> None:
    ingest(island)
    (tmp_path / "elsewhere").mkdir()
    moved = island.rename(tmp_path / "elsewhere" / "island")
    no_model()
    assert ingest(moved).unchanged == 4


def test_changed_document_gets_new_chunks_and_a_version(island: Path) -> None:
    ingest(island)
    (island / "fog.txt").write_text("The foghorn has been replaced by a bell.")
    report = ingest(island)
    fog = Document.objects.get(source="island/fog.txt")
    assert (report.changed, fog.version) == (1, 2)
    assert [chunk.text for chunk in fog.chunks.all()] == [
        "The foghorn has been replaced by a bell."
    ]
    assert fog.chunks.get().vectors.count() == 1


def test_removed_file_is_followed_and_other_folders_are_left_alone(
    island: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note.txt").write_text("A note about the harbour.")
    ingest(island)
    ingest(tmp_path / "other")
    (island / "fog.txt").unlink()
    assert ingest(island, keep_missing=True).removed == 0
    assert ingest(island).removed == 1
    assert not Chunk.objects.filter(document__source="island/fog.txt").exists()
    assert Document.objects.filter(source="other/note.txt").exists()


def test_file_that_became_unreadable_keeps_its_last_version(island: Path) -> None:
    ingest(island)
    (island / "fog.txt").write_bytes(b"\0\1\2")
    report = ingest(island)
    assert reasons(report.skipped) == {"island/fog.txt": "it is a binary file and not text"}
    assert report.removed == 0
    assert Document.objects.filter(source="island/fog.txt").exists()


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on(
    island: Path, settings: Settings
) -> None:
    settings.MAX_UPLOAD_BYTES = 2000
    (island / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (island / "empty.md").touch()
    (island / "big.txt").write_text("word " * 1000)
    (island / "broken.json").write_text("{")
    (island / "front.md").write_text("---\ntitle: [\n---\nStill read, about the harbour.")
    report = ingest(island)
    assert report.new == 5
    assert reasons(report.skipped) == {
        "island/big.txt": "it is larger than 2,000 bytes (MAX_UPLOAD_BYTES)",
        "island/broken.json": "broken JSON at line 1, column 2: Expecting property name "
        "enclosed in double quotes",
        "island/empty.md": "it is empty",
        "island/picture.md": "it is a binary file and not text",
    }
    assert "front matter left out" in reasons(report.warnings)["island/front.md"]


def test_links_hidden_and_unknown_files_are_passed_over(island: Path) -> None:
    (island / ".git").mkdir()
    (island / ".git" / "config.md").write_text("hidden")
    (island / ".hidden.md").write_text("hidden")
    (island / "picture.png").touch()
    (island / "circle").symlink_to(island, target_is_directory=True)
    (island / "nowhere.md").symlink_to(island / "missing.md")
    os.mkfifo(island / "pipe.txt")
    report = ingest(island)
    assert report.new == 4
    assert report.ignored == {"hidden": 2, "unknown format": 1, "linked folder": 1, "not a file": 2}


def test_file_whose_name_no_database_can_hold_is_passed_over(island: Path) -> None:
    (island / os.fsdecode(b"caf\xe9.md")).write_text("The café is open.")
    report = ingest(island)
    assert (report.new, report.ignored) == (4, {"name that is not UTF-8": 1})


def test_json_documents_are_followed_one_by_one(
    tmp_path: Path, no_model: Callable[[], None]
) -> None:
    path = tmp_path / "pages.json"
    entries = [
        {"content": "The harbour master is called Inge.", "source": "https://example.com/inge"},
        {"content": "The island has one tree.", "title": "Trees"},
    ]
    path.write_text(json.dumps(entries))
    assert ingest(path).new == 2
    assert sources() == ["https://example.com/inge", "pages.json#2"]
    no_model()
    assert ingest(path).unchanged == 2
    path.write_text(json.dumps(entries[:1] * 2))
    report = ingest(path)
    assert "another document of this run has the same source" in report.warnings[0].reason


def test_json_entry_that_is_gone_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "pages.json"
    path.write_text(json.dumps([{"content": f"The harbour has {n} piers."} for n in (1, 2, 3)]))
    ingest(path)
    path.write_text(json.dumps([{"content": f"The harbour has {n} piers."} for n in (1, 2)]))
    assert ingest(path).removed == 1
    assert sources() == ["pages.json#1", "pages.json#2"]


@pytest.mark.parametrize("name", ["", "UPPER", "with space", "-dash", "ä", "a" * 64, "a\n"])
def test_collection_must_be_named_by_a_slug(island: Path, name: str) -> None:
    with pytest.raises(InvalidCollectionName, match="cannot name a collection"):
        ingest(island, collection=name)
    assert not Collection.objects.exists()


def test_paths_that_hold_nothing_are_refused_and_nothing_is_removed(
    island: Path, tmp_path: Path
) -> None:
    ingest(island)
    with pytest.raises(NothingToIngest, match="no such file or folder"):
        ingest(tmp_path / "missing")
    for path in sorted(island.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(NothingToIngest, match="no file in a format known here"):
        ingest(island)
    assert Document.objects.count() == 4


def test_two_folders_of_the_same_name_are_refused(island: Path, tmp_path: Path) -> None:
    (tmp_path / "b" / "island").mkdir(parents=True)
    (tmp_path / "b" / "island" / "fog.txt").write_text("Another fog.")
    with pytest.raises(NothingToIngest, match="have the same name"):
        ingest(island, tmp_path / "b" / "island")


def test_watch_sees_every_file_finished(island: Path) -> None:
    progress: list[tuple[int, int]] = []
    ingest(island, watch=lambda finished, total, current: progress.append((finished, total)))
    assert progress[-1] == (4, 4)
    assert progress == sorted(progress)


def test_interrupted_ingestion_keeps_what_was_stored_and_goes_on(
    island: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "CHUNKS_AT_ONCE", 1)

    def interrupt(finished: int, total: int, current: str) -> None:
        if finished == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(island, watch=interrupt)
    assert Document.objects.count() == 2
    report = ingest(island)
    assert (report.unchanged, report.new) == (2, 2)


@pytest.mark.django_db(transaction=True)
def test_two_ingestions_of_one_folder_at_once_leave_one_of_everything(island: Path) -> None:
    reports: list[Report] = []

    def work() -> None:
        reports.append(ingest(island))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 3
    assert sum(report.new for report in reports) == Document.objects.count() == 4
    assert set(Document.objects.values_list("version", flat=True)) == {1}
    assert ChunkVector.objects.count() == Chunk.objects.count()
