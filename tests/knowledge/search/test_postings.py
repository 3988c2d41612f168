"""Postings: written with the chunks, gone with them, and counted now and then."""

from typing import Any

import pytest
from django.db import connection

from knowledge.ingestion import removal
from knowledge.models import (
    Census,
    Chunk,
    Collection,
    CommonTerm,
    Document,
    Posting,
    Section,
    document_id,
)
from knowledge.search import postings
from knowledge.search.scope import scope_of

pytestmark = pytest.mark.django_db


def written(name: str, *texts: str, source: str = "a.md", **fields: Any) -> Document:
    """Return a document with a chunk per text, and its postings."""
    collection, _ = Collection.objects.get_or_create(name=name)
    document = Document.objects.create(
        **{
            "id": document_id(name, source),
            "collection": collection,
            "source": source,
            "title": "",
            **fields,
        }
    )
    section = Section.objects.create(document=document, number=1, path=fields.pop("path", []))
    for number, text in enumerate(texts, start=1):
        Chunk.objects.create(document=document, section=section, number=number, text=text, tokens=1)
    postings.write(document)
    return document


def impacts(chunk: Chunk | None = None) -> dict[str, float]:
    """Return word → impact of the chunk, of the only one when none is given."""
    postings_of_chunk = Posting.objects.filter(chunk=chunk or Chunk.objects.get())
    return dict(postings_of_chunk.values_list("term", "impact"))


def words(text: str, config: str = "english") -> set[str]:
    """Return the words a text is found by."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tsvector_to_array(knowledge_words(%s, %s))", [config, text])
        return set(cursor.fetchone()[0])


def test_a_chunk_is_found_by_stems_without_stop_words() -> None:
    written("sea", "The foghorns were sounding")
    assert set(impacts()) == {"foghorn", "sound"}


def test_a_word_of_the_title_says_more_than_one_of_the_text() -> None:
    written("sea", "whale shark whale", title="Shark")
    impact_of = impacts()
    assert impact_of["shark"] > impact_of["whale"] > 0


def test_repeating_a_word_says_ever_less() -> None:
    first, second, fourth = (
        impacts(written("sea", text, source=text).chunks.get())["whale"]
        for text in ("whale", "whale whale", "whale whale whale whale")
    )
    assert first < second < fourth < 1
    assert fourth - second < second - first


def test_a_word_says_less_in_a_longer_text() -> None:
    short = written("sea", "whale", source="short").chunks.get()
    long = written("sea", "whale " + "plankton krill " * 200, source="long").chunks.get()
    assert impacts(long)["whale"] < impacts(short)["whale"]


def test_another_document_changes_no_posting_of_the_first() -> None:
    first = written("sea", "whale").chunks.get()
    before = impacts(first)
    written("sea", "whale " * 50, source="b.md")
    assert impacts(first) == before


def test_deleted_chunks_and_collections_leave_nothing() -> None:
    document = written("sea", "whale", "shark")
    postings.refresh(document.collection.pk)
    document.chunks.filter(number=1).delete()
    assert set(Posting.objects.values_list("term", flat=True)) == {"shark"}
    document.collection.delete()
    assert not Posting.objects.exists()
    assert not Census.objects.exists()


def test_rebuilding_writes_what_was_there() -> None:
    document = written("sea", "The whale sings", "of krill", title="Songs", crumbs=["Deep"])
    before = set(Posting.objects.values_list("chunk", "term", "impact"))
    postings.rebuild()
    assert set(Posting.objects.values_list("chunk", "term", "impact")) == before
    assert Census.objects.get().configs == [document.config]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the “lighthouse” – really", {"lighthous", "realli"}),
        ("l’eau «froide»", {"l", "eau", "froid"}),
        ("ÄRGER", {"ärger"}),
    ],
)
def test_punctuation_of_any_script_is_no_part_of_a_word(text: str, found: set[str]) -> None:
    assert words(text) == found


def test_words_without_borders_are_found_by_neighbouring_characters() -> None:
    assert words("重置密码。", "simple") >= {"重置", "置密", "密码"}
    assert words("パスワードを変更", "simple") & words("変更する", "simple") == {"変更"}
    assert words("ลืมรหัสผ่าน", "simple") & words("รหัส", "simple")
    assert words("plain words", "simple") == {"plain", "words"}


def test_a_collection_knows_every_language_of_its_documents_at_once() -> None:
    written("sea", "whale")
    written("sea", "Wal", source="b.md", config="german")
    written("sea", "Hai", source="c.md", config="german")
    assert Census.objects.get().configs == ["english", "german"]


def test_counting_is_due_when_a_twentieth_changed() -> None:
    document = written("sea", *(f"whale {number}" for number in range(100)))
    collection = document.collection.pk
    assert postings.refresh(collection)
    assert not postings.refresh(collection)
    written("sea", *["shark"] * 5, source="b.md")
    assert not postings.refresh(collection)
    document.chunks.filter(number__lte=3).delete()  # five came, three went
    assert postings.refresh(collection)
    assert Census.objects.get().chunks == 102


def test_only_words_with_more_postings_than_are_read_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postings, "READ", 4)
    document = written("sea", "whale krill", "whale", "whale krill")
    postings.refresh(document.collection.pk)
    assert dict(CommonTerm.objects.values_list("term", "chunks")) == {"whale": 3}


def test_a_deletion_leaves_the_counts_that_counting_anew_would_find() -> None:
    deleted = [
        written("sea", *["whale song"] * 100, *["krill"] * 20, source=f"{number}.md")
        for number in range(4)
    ]
    sea = written("sea", *["whale"] * 200, source="kept.md").collection
    other = written("lake", *["whale"] * 200).collection
    for collection in (sea, other):
        postings.refresh(collection.pk)
    # Not counted yet, and so nothing that a deletion could take off.
    deleted.append(written("sea", *["whale song"] * 9, source="late.md"))
    removal.delete(deleted)
    assert counted(sea) == (200, {"whale": 200, "song": 0})
    assert counted(other) == (200, {"whale": 200})
    assert scope_of(["sea"]).chunks == 200
    assert postings.refresh(sea.pk, force=True)
    assert counted(sea) == (200, {"whale": 200})


def counted(collection: Collection) -> tuple[int | None, dict[str, int]]:
    """Return how many chunks the collection has, and of which common word how many."""
    terms = CommonTerm.objects.filter(collection=collection)
    chunks = Census.objects.get(collection=collection).chunks
    return chunks, dict(terms.values_list("term", "chunks"))
