"""Damaged archives: what was changed on the way is refused before anything is written."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from pytest_django import DjangoDbBlocker, Settings

from knowledge.archive import export, restore
from knowledge.archive.contents import UnusableArchive
from knowledge.archive.restore import put
from knowledge.models import Collection, Document, DocumentVector, Version
from tests.knowledge import islands
from tests.knowledge.islands import OTHER, entry, noise

# An export sees one moment, which takes a transaction of its own.
pytestmark = pytest.mark.django_db(transaction=True)


Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def exported(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> bytes:
    """The bytes of an archive, of a collection that is no more."""
    path = tmp_path_factory.mktemp("exported") / "island.docent"
    with django_db_blocker.unblock():
        island = islands.island()
        export(island, path)
        island.delete()
    return path.read_bytes()


@pytest.fixture
def sound(exported: bytes, tmp_path: Path) -> Path:
    """An archive that nothing has happened to."""
    path = tmp_path / "island.docent"
    path.write_bytes(exported)
    return path


def changed(archive: Path, change: Change, *, sealed: bool = True, packed: bool = False) -> Path:
    """The archive with members changed; `sealed` makes the manifest agree with them again."""
    with ZipFile(archive) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    if sealed:
        manifest = json.loads(members["manifest.json"])
        manifest["members"] = {
            name: {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
            for name, body in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    path = archive.with_name("changed.docent")
    with ZipFile(path, "w", ZIP_DEFLATED if packed else ZIP_STORED) as file:
        for name, body in members.items():
            file.writestr(name, body)
    return path


def line(name: str, place: int, **values: Any) -> Change:
    """Change fields of one line of a member."""

    def change(members: dict[str, bytes]) -> None:
        lines = members[name].splitlines()
        lines[place] = json.dumps(json.loads(lines[place]) | values).encode()
        members[name] = b"\n".join(lines) + b"\n"

    return change


def without(name: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        del members[name]

    return change


def with_more(name: str, body: bytes) -> Change:
    return lambda members: members.update({name: body})


def replaced(name: str, old: bytes, new: bytes) -> Change:
    return lambda members: members.update({name: members[name].replace(old, new)})


def cut(name: str, size: int) -> Change:
    return lambda members: members.update({name: members[name][:-size]})


def last(name: str, body: bytes) -> Change:
    return lambda members: members.update({name: members[name][: -len(body)] + body})


CHUNKS = "vectors/0/chunks.npy"
NAMELESS = {"name": "—", "kind": "dash", "names": ["—"]}
TIE = {
    "subject": 0,
    "predicate": "is",
    "object": 0,
    "chunk": 1,
    "valid_from": "2024-01-01",
    "valid_to": None,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (replaced("documents.jsonl", b"foghorn", b"foxhorn"), "documents.jsonl .* SHA-256 differs"),
        (last(CHUNKS, b"\0\0"), "chunks.npy .* SHA-256 differs"),
        (without("questions.jsonl"), "not those its manifest names"),
        (with_more("extra.txt", b"x"), "not those its manifest names"),
        (without("manifest.json"), "no Docent archive"),
        (line("manifest.json", 0, version=4), "version 4, and this Docent reads versions 1 to 3"),
        (line("manifest.json", 0, format="zip"), "not that of a Docent archive"),
        (with_more("manifest.json", b"{"), "manifest cannot be read"),
    ],
)
def test_a_tampered_archive_is_refused_before_anything_is_written(
    sound: Path, change: Change, reason: str
) -> None:
    path = changed(sound, change, sealed=False)
    with pytest.raises(UnusableArchive, match=reason):
        restore(path, name="fresh")
    assert not Collection.objects.filter(name="fresh").exists()


COUNTS = dict.fromkeys(
    ("documents", "versions", "sections", "chunks", "questions", "calibrations"), 1
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (line("documents.jsonl", 1, title="x" * 501), "documents.jsonl, line 2: title: .* 500"),
        (line("documents.jsonl", 0, content="a\0b"), "line 1: content: .*null character"),
        (line("documents.jsonl", 0, config="klingon"), "no text search configuration"),
        (line("documents.jsonl", 0, surprise=1), "surprise: Extra inputs"),
        (line("documents.jsonl", 0, sections=[]), "a section that is not there"),
        (line("documents.jsonl", 0, models=[7]), "names a model that is not there"),
        (line("documents.jsonl", 0, entities=[]), "of an entity that is not there"),
        (line("documents.jsonl", 0, entities=[NAMELESS]), "'—' is no name of anything"),
        (line("documents.jsonl", 0, relations=[TIE | {"chunk": 3}]), "a chunk that is not there"),
        (line("documents.jsonl", 0, relations=[TIE | {"valid_to": "2023-12-31"}]), "ends before"),
        (line("documents.jsonl", 0, relations=[]), "more or less than its manifest says"),
        (line("documents.jsonl", 0, models=[0]), "vectors of nothing|fewer vectors"),
        (line("documents.jsonl", 1, source="ferry.md"), "twice|versions of"),
        (replaced("versions.jsonl", b"quiet.md", b"nobody.md"), "versions of 'nobody.md'"),
        (line("manifest.json", 0, counts=COUNTS), "more or less than its manifest says"),
        (with_more("questions.jsonl", b""), "more or less than its manifest says"),
        (last(CHUNKS, b"\x00\x7c"), "chunks.npy holds what is no number"),
        (cut(CHUNKS, 768), "chunks.npy holds fewer vectors"),
        (replaced(CHUNKS, b"'<f2'", b"'<i2'"), "no matrix of half precision"),
        (with_more(CHUNKS, b"nonsense"), "chunks.npy"),
        (line("collection.json", 0, embedding_model=""), "collection.json: embedding_model"),
    ],
)
def test_an_archive_that_contradicts_itself_is_refused_before_anything_is_written(
    sound: Path, change: Change, reason: str
) -> None:
    path = changed(sound, change)
    with pytest.raises(UnusableArchive, match=reason):
        restore(path, name="fresh")
    assert not Collection.objects.filter(name="fresh").exists()


def test_an_archive_of_the_first_version_still_comes_in_without_what_came_later(
    island: Collection, archive: Path
) -> None:
    later = ("entities", "relations", "edition")
    Document.objects.update(edition="")
    Version.objects.update(edition="")

    def first(members: dict[str, bytes]) -> None:
        for member in ("documents.jsonl", "versions.jsonl"):
            records = [json.loads(each) for each in members[member].splitlines()]
            bare = [{name: r[name] for name in r if name not in later} for r in records]
            members[member] = b"".join(json.dumps(each).encode() + b"\n" for each in bare)
        manifest = json.loads(members["manifest.json"])
        counts = {name: manifest["counts"][name] for name in COUNTS}
        members["manifest.json"] = json.dumps(manifest | {"version": 1, "counts": counts}).encode()

    before = islands.rows(island)
    restore(changed(archive, first), name="fresh")
    after = islands.rows(Collection.objects.get(name="fresh"))
    stated = {"Entity", "EntityName", "Relation"}
    assert all(before[kind] and not after[kind] for kind in stated)
    assert {kind: after[kind] for kind in after.keys() - stated} == {
        kind: before[kind] for kind in before.keys() - stated
    }


def test_vectors_that_fit_none_of_the_same_model_are_refused(archive: Path) -> None:
    put(Collection.objects.create(name="wide"), noise(entry("a.md", ["A."]), OTHER, 512))
    DocumentVector.objects.filter(collection__name="island").delete()
    with pytest.raises(UnusableArchive, match=r"wide@acme have 1024 dimensions, .* have 512"):
        restore(archive, name="fresh")
    assert not Collection.objects.filter(name="fresh").exists()


def test_lines_without_end_and_bombs_are_refused(
    archive: Path, tmp_path: Path, settings: Settings
) -> None:
    settings.PARSE_MAX_EXPANDED_BYTES = 20_000
    path = changed(archive, with_more("questions.jsonl", b"x" * 90_000))
    with pytest.raises(UnusableArchive, match=r"questions.jsonl, line 1: it is longer than 80,000"):
        restore(path, name="fresh")
    with ZipFile(tmp_path / "bomb.docent", "w", ZIP_DEFLATED) as file:
        file.writestr("manifest.json", b" " * 40_000_000)
    with pytest.raises(UnusableArchive, match=r"manifest.json is larger than"):
        restore(tmp_path / "bomb.docent")
    path = changed(archive, with_more("questions.jsonl", b" " * 30_000_000), packed=True)
    with pytest.raises(UnusableArchive, match="unpacks to more than 200 times its size"):
        restore(path, name="fresh")


@pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"nothing like it"])
def test_what_is_no_archive_is_named(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "x.docent").write_bytes(body)
    with pytest.raises(UnusableArchive, match="no Docent archive"):
        restore(tmp_path / "x.docent")
