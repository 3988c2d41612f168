"""Removal: deletes documents with all that is theirs, and gives a receipt."""

from collections import Counter
from collections.abc import Iterable

from django.db import connection, transaction

from knowledge import changes, graph
from knowledge.ingestion.store import lock_collection
from knowledge.models import Collection, Document, Receipt
from knowledge.search import postings
from knowledge.versions import turns_citing

AT_ONCE = 500  # documents

OF_DOCUMENTS = "document_id = ANY(%(documents)s)"
OF_CHUNKS = "chunk_id IN (SELECT id FROM knowledge_chunk WHERE document_id = ANY(%(documents)s))"
OF_SECTIONS = (
    "section_id IN (SELECT id FROM knowledge_section WHERE document_id = ANY(%(documents)s))"
)
# What a receipt calls it, the table, and which of its rows; those that refer to others come first.
ROWS = (
    ("relations", "knowledge_relation", OF_DOCUMENTS),
    ("entities named", "knowledge_entityname", OF_DOCUMENTS),
    ("postings", "knowledge_posting", OF_CHUNKS),
    ("vectors", "knowledge_chunkvector", OF_CHUNKS),
    ("vectors", "knowledge_sectionvector", OF_SECTIONS),
    ("vectors", "knowledge_documentvector", OF_DOCUMENTS),
    ("chunks", "knowledge_chunk", OF_DOCUMENTS),
    ("sections", "knowledge_section", OF_DOCUMENTS),
    ("versions", "knowledge_version", OF_DOCUMENTS),
    ("copies", "knowledge_copy", OF_DOCUMENTS),
    ("documents", "knowledge_document", "id = ANY(%(documents)s)"),
)


def delete(documents: Iterable[Document], *, by: str = "", reason: str = "") -> Receipt:
    """Delete the documents, and return a stored receipt that says what was removed.

    Their sections, chunks, vectors, postings, relations, former versions and copies go with them,
    in one transaction, so they are gone from every search that begins afterwards; who listens to
    `knowledge.changes` forgets what was made of them. What searches know of the collections as a
    whole is true at once. The receipt counts what the database says it deleted, and lists the turns
    whose answers cited one of them; those answers stay with their conversations. `by` is who asked
    for it.
    """
    documents_to_delete = list(documents)
    collections = Collection.objects.filter(
        pk__in={each.collection_id for each in documents_to_delete}
    )
    removed = Counter({name: 0 for name, _, _ in ROWS})
    with transaction.atomic():
        for collection in collections.order_by("pk"):
            lock_collection(collection)
        for begin in range(0, len(documents_to_delete), AT_ONCE):
            removed += delete_rows(
                [each.pk for each in documents_to_delete[begin : begin + AT_ONCE]]
            )
        return Receipt.objects.create(
            collection=", ".join(collections.values_list("name", flat=True))[:1000],
            by=by[:150],
            reason=reason[:200],
            documents=[
                {"id": each.pk, "source": each.source, "title": each.title, "version": each.version}
                for each in documents_to_delete
            ],
            removed={name: removed[name] for name, _, _ in ROWS},
            answers=[str(turn) for turn in turns_citing(each.pk for each in documents_to_delete)],
        )


def delete_rows(documents: list[str]) -> Counter[str]:
    """Delete the documents with these ids; return how many rows of each kind that were."""
    removed: Counter[str] = Counter()
    unsaid, entities = changes.text_digests(documents), graph.entities_named_by(documents)
    postings.uncount(documents)
    with connection.cursor() as cursor:
        for name, table, which in ROWS:
            cursor.execute(
                f"DELETE FROM {table} WHERE {which}",  # noqa: S608 from the table above
                {"documents": documents},
            )
            removed[name] += cursor.rowcount
    graph.prune(entities)
    changes.notify(documents, unsaid)
    return removed
