"""Copies: the same bytes are stored once, and follow their files."""

import json
from pathlib import Path
from typing import Any

import pytest

from knowledge import ingestion
from knowledge.errors import NothingToIngest
from knowledge.ingestion import Report
from knowledge.models import Chunk, Copy, Document, Receipt, Version

pytestmark = pytest.mark.django_db

LICENCE = "Anybody may use the ferry as long as nobody removes this notice from it."
OTHER = "Only islanders may use the ferry, and everybody may remove this notice."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "isle" / "docs").mkdir(parents=True)
    (tmp_path / "isle" / "a.md").write_text(f"# Licence\n\n{LICENCE}")
    (tmp_path / "isle" / "docs" / "b.md").write_text(f"# Licence\n\n{LICENCE}")
    return tmp_path / "isle"


def ingest(*paths: Path, **options: Any) -> Report:
    return ingestion.ingest(ingestion.find(paths), collection="isle", **options)


def sources() -> list[str]:
    return sorted(Document.objects.values_list("source", flat=True))


def texts() -> dict[str, str]:
    documents = Document.objects.values_list("source", "content")
    return {source: content.split("\n\n")[-1] for source, content in documents}


def test_same_bytes_under_two_paths_are_one_document(folder: Path) -> None:
    report = ingest(folder)
    assert (report.new, report.duplicate, sources()) == (1, 1, ["isle/a.md"])
    assert Copy.objects.get().source == "isle/docs/b.md"
    item = Document.objects.get().collection.ingests.get().items.get(number=2)
    assert (item.status, item.reason) == ("duplicate", "the same as isle/a.md")
    report = ingest(folder)
    assert (report.unchanged, report.duplicate, report.removed) == (1, 1, 0)
    assert Copy.objects.count() == 1


def test_document_moves_to_its_copy_when_its_own_file_is_gone(folder: Path) -> None:
    ingest(folder)
    before = Document.objects.values("id", "version", "sha1").get()
    chunks = list(Chunk.objects.values())
    (folder / "a.md").unlink()
    report = ingest(folder)
    assert (report.removed, sources()) == (0, ["isle/docs/b.md"])
    assert Document.objects.values("id", "version", "sha1").get()["id"] == before["id"]
    assert not Copy.objects.exists()
    assert len(chunks) == Chunk.objects.count()
    assert ingest(folder).unchanged == 1


def test_document_moves_to_a_copy_that_lies_in_another_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "reef").mkdir()
    (folder / "docs" / "b.md").rename(tmp_path / "reef" / "b.md")
    (folder / "c.md").write_text(OTHER)
    ingest(folder)
    assert ingest(tmp_path / "reef").duplicate == 1
    (folder / "a.md").unlink()
    assert ingest(folder).removed == 0
    assert sources() == ["isle/c.md", "reef/b.md"]


def test_renamed_file_keeps_its_id_and_versions(folder: Path) -> None:
    (folder / "docs" / "b.md").unlink()
    ingest(folder)
    (folder / "a.md").write_text(f"# Licence\n\n{OTHER}")
    ingest(folder)
    before = Document.objects.get()
    (folder / "a.md").rename(folder / "renamed.md")
    report = ingest(folder)
    after = Document.objects.get()
    assert (after.pk, after.source) == (before.pk, "isle/renamed.md")
    assert (report.removed, after.versions.count()) == (0, 1)


def test_new_file_at_a_path_that_was_left_is_a_document_of_its_own(folder: Path) -> None:
    (folder / "docs" / "b.md").unlink()
    ingest(folder)
    (folder / "a.md").rename(folder / "renamed.md")
    ingest(folder)
    (folder / "a.md").write_text(OTHER)
    assert ingest(folder).new == 1
    assert sources() == ["isle/a.md", "isle/renamed.md"]
    assert Document.objects.count() == 2


@pytest.mark.parametrize("changed", ["a.md", "docs/b.md"])
def test_copy_whose_twin_changed_keeps_its_text(folder: Path, changed: str) -> None:
    ingest(folder)
    (folder / changed).write_text(OTHER)
    ingest(folder)
    unchanged = ({"a.md", "docs/b.md"} - {changed}).pop()
    assert texts() == {f"isle/{changed}": OTHER, f"isle/{unchanged}": LICENCE}
    assert not Copy.objects.exists()
    assert ingest(folder).unchanged == 2


def test_both_copies_may_change_together(folder: Path) -> None:
    ingest(folder)
    for name in ("a.md", "docs/b.md"):
        (folder / name).write_text(OTHER)
    ingest(folder)
    assert texts() == {"isle/a.md": OTHER}
    assert (Copy.objects.count(), Version.objects.count()) == (1, 1)


def test_two_documents_that_become_the_same_are_stored_once(folder: Path) -> None:
    (folder / "docs" / "b.md").write_text(OTHER)
    assert ingest(folder).new == 2
    (folder / "docs" / "b.md").write_bytes((folder / "a.md").read_bytes())
    report = ingest(folder)
    assert (report.duplicate, report.removed, sources()) == (1, 1, ["isle/a.md"])
    assert ingest(folder).duplicate == 1


def test_copy_that_is_gone_is_forgotten(folder: Path) -> None:
    ingest(folder)
    (folder / "docs" / "b.md").unlink()
    assert ingest(folder).removed == 0
    assert not Copy.objects.exists()
    assert sources() == ["isle/a.md"]


def test_entries_that_move_up_in_a_file_keep_their_documents(tmp_path: Path) -> None:
    path = tmp_path / "piers.json"
    rows = [{"content": f"The harbour has {n} piers."} for n in range(4)]
    path.write_text(json.dumps(rows))
    ingest(path)
    ids = dict(Document.objects.values_list("content", "id"))
    path.write_text(json.dumps(rows[1:]))
    report = ingest(path)
    assert report.removed == 1
    assert sources() == ["piers.json#1", "piers.json#2", "piers.json#3"]
    after = dict(Document.objects.values_list("content", "id"))
    assert after == {content: ids[content] for content in after}
    path.write_text(json.dumps(rows[:0:-1]))
    ingest(path)
    assert texts() == {
        "piers.json#1": "The harbour has 3 piers.",
        "piers.json#2": "The harbour has 2 piers.",
        "piers.json#3": "The harbour has 1 piers.",
    }


def test_entry_that_moves_to_another_file_stays(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    inge, tree, well, mill = (
        {"content": f"The island has one {name}, an old one.", "source": f"https://x.org/{name}"}
        for name in ("harbour", "tree", "well", "mill")
    )
    first.write_text(json.dumps([inge, tree, mill]))
    second.write_text(json.dumps([well, mill]))
    assert "has the same source" in ingest(first, second).warnings[0].reason
    first.write_text(json.dumps([tree, mill]))
    second.write_text(json.dumps([well, inge]))
    report = ingest(first, second)
    assert (report.removed, report.unchanged, report.warnings) == (0, 4, [])
    assert Document.objects.get(source="https://x.org/harbour").origin == "b.json"


def test_another_folder_of_the_same_name_is_refused(folder: Path, tmp_path: Path) -> None:
    ingest(folder)
    other = tmp_path / "elsewhere" / "isle"
    other.mkdir(parents=True)
    (other / "c.md").write_text(OTHER)
    with pytest.raises(NothingToIngest, match="each would replace the other's documents"):
        ingest(other)
    folder.rename(tmp_path / "gone")
    with pytest.raises(NothingToIngest, match="less than half of its documents"):
        ingest(other)
    assert sources() == ["isle/a.md"]
    assert ingest(other, keep_missing=True).new == 1
    assert sources() == ["isle/a.md", "isle/c.md"]


def test_another_file_of_the_same_name_is_refused(folder: Path) -> None:
    ingest(folder / "a.md")
    (folder / "docs" / "a.md").write_text(OTHER)
    with pytest.raises(NothingToIngest, match="each would replace the other's documents"):
        ingest(folder / "docs" / "a.md")


def test_removal_leaves_a_receipt(folder: Path) -> None:
    (folder / "docs" / "b.md").write_text(OTHER)
    ingest(folder)
    (folder / "docs" / "b.md").unlink()
    report = ingest(folder)
    receipt = Receipt.objects.get()
    assert report.receipt == str(receipt.pk)
    assert (receipt.removed["documents"], receipt.documents[0]["source"]) == (1, "isle/docs/b.md")
    assert receipt.reason == "its file, entry or page is gone"
