"""Replacing: a document is taken in anew, and only so many of its versions are kept."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pytest_django import Settings

from knowledge import ingestion
from knowledge.embedding import Vectors
from knowledge.identifiers import LOCAL_MODEL
from knowledge.ingestion.job_vectors import Encoder
from knowledge.models import ChunkVector, Collection, Document, Version
from knowledge.search import search
from knowledge.versions import versions
from tests.knowledge.jobs import ran, upload

pytestmark = pytest.mark.django_db


def test_upload_of_the_same_name_replaces_the_document() -> None:
    ran(upload())
    assert ran(upload(b"The foghorn is silent now.")).changed == 1
    assert Document.objects.get().version == 2


def test_the_documents_own_version_is_kept_with_each_of_ours() -> None:
    text = "---\nversion: {}\n---\nThe foghorn sounds every thirty seconds."
    for own in ("2.1", "2.2"):
        ran(upload(text.format(own).encode(), "fog.md"))
    document = Document.objects.get()
    assert [(each.number, each.edition) for each in versions(document)] == [(2, "2.2"), (1, "2.1")]
    (passage,) = search("How often does the foghorn sound?", collections=["island"]).passages
    assert (passage.version, passage.edition) == (2, "2.2")
    ran(ingestion.reingest(document))
    assert Document.objects.get().edition == "2.2"


def test_document_is_taken_in_anew_from_its_file(island: Path) -> None:
    ran(ingestion.plan("island", paths=[island]))
    fog = Document.objects.get(source="island/fog.txt")
    first = set(fog.chunks.values_list("pk", flat=True))
    assert ran(ingestion.reingest(fog)).changed == 1
    fog.refresh_from_db()
    assert fog.version == 1, "the same text is the same version"
    assert not first & set(fog.chunks.values_list("pk", flat=True))
    (island / "fog.txt").write_text("The foghorn has been replaced by a bell.")
    ran(ingestion.reingest(fog))
    fog.refresh_from_db()
    assert (fog.version, Document.objects.count()) == (2, 4)


def test_document_of_an_upload_is_taken_in_anew_from_its_text() -> None:
    ran(upload())
    document = Document.objects.get()
    before = Document.objects.values("title", "content", "sha1", "version", "summary").get()
    assert ran(ingestion.reingest(document)).changed == 1
    assert Document.objects.values("title", "content", "sha1", "version", "summary").get() == before
    job = ingestion.reingest(document)
    ingestion.delete([document])
    assert ran(job).skipped[0].reason == "the document was deleted"


def test_one_document_of_an_upload_of_many_is_taken_in_anew_without_the_others() -> None:
    entries = [
        {"source": name, "content": f"The {name} is painted red."} for name in ("pier", "mill")
    ]
    ran(upload(json.dumps(entries).encode(), "island.json"))
    ran(ingestion.reingest(Document.objects.get(source="pier")))
    assert set(Document.objects.values_list("source", flat=True)) == {"pier", "mill"}


def test_old_job_tried_again_leaves_alone_what_came_after_it(island: Path) -> None:
    (island / "late.md").write_bytes(b"")
    old = ingestion.plan("island", paths=[island])
    ran(old)
    (island / "late.md").write_text("The last ferry leaves at ten.")
    (island / "mill.md").write_text("The mill grinds rye.")
    ran(ingestion.plan("island", paths=[island]))
    assert ingestion.retry(old.pk)
    ran(old)
    assert Document.objects.filter(source="island/mill.md").exists()


def test_document_changed_across_a_switch_has_vectors_of_the_model_they_were_made_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran(upload())
    encode = Encoder.ask_model

    def switched(encoder: Encoder, texts: Sequence[str]) -> Vectors:
        Collection.objects.update(embedding_model="other@acme")
        return encode(encoder, texts)

    monkeypatch.setattr(Encoder, "ask_model", switched)
    ran(upload(b"The foghorn is silent now."))
    assert set(ChunkVector.objects.values_list("model", flat=True)) == {LOCAL_MODEL}


def test_only_so_many_versions_are_kept(settings: Settings) -> None:
    settings.KEEP_VERSIONS = 2
    for year in range(5):
        ran(upload(f"The foghorn of year {year} sounds twice.".encode()))
    document = Document.objects.get()
    assert document.version == 5
    assert [each.number for each in document.versions.all()] == [4, 3]
    ingestion.delete([document])
    assert not Version.objects.exists()
