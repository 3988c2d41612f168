"""Moves: documents go to another collection with all that is theirs; answers still cite them."""

from django.db import connection, transaction

from knowledge import changes, graph
from knowledge.errors import KnowledgeError
from knowledge.ingestion.store import lock_collection
from knowledge.models import Collection, Copy, Document, Entity, EntityName, Relation
from knowledge.search import postings

OF_CHUNKS = "chunk_id IN (SELECT id FROM knowledge_chunk WHERE document_id = %(document)s)"
OF_SECTIONS = "section_id IN (SELECT id FROM knowledge_section WHERE document_id = %(document)s)"
# The table, its column that names the collection, and which of its rows go along.
ROWS = (
    ("knowledge_chunkvector", "collection_id", OF_CHUNKS),
    ("knowledge_sectionvector", "collection_id", OF_SECTIONS),
    ("knowledge_documentvector", "collection_id", "document_id = %(document)s"),
    ("knowledge_posting", "collection", OF_CHUNKS),
    ("knowledge_copy", "collection_id", "document_id = %(document)s"),
    ("knowledge_document", "collection_id", "id = %(document)s"),
)


class Immovable(KnowledgeError):
    """The document cannot go there."""

    code = "immovable"


def move(identity: str, target: Collection) -> bool:
    """Move a document into a collection, in the caller's transaction; False when it is there.

    Its id, versions, chunks, vectors, words and edits stay what they are, so answers that cite it
    find it as before. Raises Immovable.
    """
    document = Document.objects.select_related("collection").filter(pk=identity).first()
    if document is None:
        raise Immovable("it was deleted meanwhile")
    if document.collection_id == target.pk:
        return False
    for collection in sorted((document.collection, target), key=lambda each: each.pk):
        lock_collection(collection)
    refuse(document, target)
    entities = graph.entities_named_by([identity])
    postings.uncount([identity])
    with connection.cursor() as cursor:
        for table, column, which in ROWS:
            cursor.execute(
                f"UPDATE {table} SET {column} = %(target)s WHERE {which}",  # noqa: S608 from the table above
                {"document": identity, "target": target.pk},
            )
    postings.know_configs(identity)
    move_statements(identity, target)
    graph.prune(entities)
    changes.notify([identity])
    return True


def refuse(document: Document, target: Collection) -> None:
    """Raise Immovable where two documents would have one place, or it could not be found."""
    there = Document.objects.filter(collection=target)
    copies = Copy.objects.filter(collection=target)
    own = [document.source, *document.copies.values_list("source", flat=True)]
    if there.filter(source__in=own).exists() or copies.filter(source__in=own).exists():
        raise Immovable(f"{target.name} has a document of the same source")
    twin = there.filter(sha1=document.sha1).first()
    if twin is not None:
        raise Immovable(f"{target.name} has the same bytes as {twin.source}")
    if not document.vectors.filter(model=target.embedding_model).exists():
        raise Immovable(
            f"{target.name} is searched by vectors of {target.embedding_model}, and "
            f"{document.collection.name} has none: make them there first"
        )


def move_statements(identity: str, target: Collection) -> None:
    """Let what the document states speak of the entities of the other collection."""
    names = EntityName.objects.filter(document=identity).select_related("entity")
    theirs: dict[int, Entity] = {}
    for name in names:
        entity = name.entity
        if entity.pk not in theirs:
            theirs[entity.pk], _ = Entity.objects.get_or_create(
                collection=target, key=entity.key, kind=entity.kind, defaults={"name": entity.name}
            )
        name.entity = theirs[entity.pk]
        name.save(update_fields=["entity"])
    for relation in Relation.objects.filter(document=identity):
        relation.subject = theirs.get(relation.subject_id, relation.subject)
        relation.object = theirs.get(relation.object_id, relation.object)
        relation.save(update_fields=["subject", "object"])


def finish(*collections: int) -> None:
    """Count what searches go by anew in the collections with these ids."""
    for collection in collections:
        with transaction.atomic():
            postings.refresh(collection, force=True)
