"""Removal: what is deleted is gone, counted, and known to the answers that relied on it."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.names import Status
from knowledge import ingestion, versions
from knowledge.ingestion import removal
from knowledge.models import Chunk, Document, Receipt, Section
from knowledge.models.search_tables import ChunkVector, DocumentVector, SectionVector
from knowledge.search import search
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def fog(island: Path) -> Document:
    """The document about fog, in its second version."""
    ingestion.ingest(ingestion.find([island]), collection="island")
    (island / "fog.txt").write_text("The foghorn has been replaced by a bell. Sailors like it.")
    ingestion.ingest(ingestion.find([island]), collection="island")
    return Document.objects.get(source="island/fog.txt")


def cite(document: Document, version: int, *, status: Status = Status.COMPLETED) -> str:
    citation = factories.CITATION | {"document_id": document.pk, "version": version}
    talk = factories.conversation(f"desk-{version}-{status}")
    return str(factories.turn(talk, status=status, citations_used=[citation] * 2).pk)


def test_receipt_counts_every_row_and_nothing_is_left(fog: Document) -> None:
    rest = [kind._default_manager.count() for kind in (Document, Section, Chunk)]
    row_counts = factories.rows_left([fog.pk])
    assert row_counts == removal.delete([fog], by="inge").removed
    assert row_counts["documents"] == row_counts["versions"] == row_counts["chunks"] == 1
    assert (row_counts["vectors"], row_counts["postings"] > 5) == (3, True)
    assert not any(factories.rows_left([fog.pk]).values())
    assert [kind._default_manager.count() for kind in (Document, Section, Chunk)] == [
        count - 1 for count in rest
    ]
    receipt = Receipt.objects.get()
    assert (receipt.collection, receipt.by) == ("island", "inge")
    assert receipt.documents == [
        {"id": fog.pk, "source": "island/fog.txt", "title": "Fog", "version": 2}
    ]


def test_deleted_document_is_gone_from_every_search(fog: Document) -> None:
    assert any(
        each.document_id == fog.pk
        for each in search("bell foghorn", collections=["island"]).passages
    )
    removal.delete([fog])
    assert not any(
        each.document_id == fog.pk
        for each in search("bell foghorn", collections=["island"]).passages
    )
    ids = Chunk.objects.values("pk")
    assert not ChunkVector.objects.exclude(chunk__in=ids).exists()
    assert not SectionVector.objects.exclude(section__in=Section.objects.values("pk")).exists()
    assert not DocumentVector.objects.filter(document=fog.pk).exists()


def test_receipt_lists_the_answers_that_relied_on_it(fog: Document) -> None:
    old, new = cite(fog, 1), cite(fog, 2)
    assert sorted(removal.delete([fog]).answers) == sorted([old, new])
    assert len(versions.turns_citing([fog.pk])) == 2


def test_answers_of_a_former_version_are_known(fog: Document) -> None:
    old, new = cite(fog, 1), cite(fog, 2)
    relied = {str(each.turn): each.version for each in versions.answers_citing(fog)}
    assert relied == {old: 1, new: 2}
    assert [turn for turn, version in relied.items() if version < fog.version] == [old]


def test_only_answers_that_were_given_rely_on_anything(fog: Document) -> None:
    cite(fog, 2, status=Status.CANCELLED)
    assert versions.answers_citing(fog) == []


def test_documents_of_two_collections_go_with_one_receipt(fog: Document) -> None:
    factories.collection("handbook", documents=2)
    receipt = removal.delete(Document.objects.all())
    assert (receipt.collection, receipt.removed["documents"]) == ("handbook, island", 6)
    assert not Document.objects.exists()


def run(*words: str) -> str:
    out = StringIO()
    call_command("delete", *words, stdout=out)
    return " ".join(out.getvalue().split())


def test_command_deletes_what_is_named_and_prints_the_receipt(fog: Document) -> None:
    output = run("--collection", "island", "island/fog.txt", "--yes")
    assert "documents │ 1" in output
    assert str(Receipt.objects.get().pk) in output.replace(" ", "")
    assert Document.objects.count() == 3
    run("--collection", "island", "island/rooms", "--yes")
    assert Document.objects.count() == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--collection", "mainland", "--yes"], "There is no collection"),
        (["--collection", "island", "nothing.md", "--yes"], "no such document"),
        (["--collection", "island"], "say so with --yes"),
    ],
)
def test_command_deletes_nothing_it_was_not_asked_for(
    fog: Document, words: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        run(*words)
    assert Document.objects.count() == 4
