"""Statements: what a document says of entities, into an archive and out of it again."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from knowledge.archive.records import DocumentRecord, EntityRecord, RelationRecord
from knowledge.graph import Named
from knowledge.graph.keys import key
from knowledge.graph.writing import stored
from knowledge.models import Chunk, Document, EntityName, Relation


def stated(document: str) -> tuple[list[EntityRecord], list[RelationRecord]]:
    """Return the entities that the document with this id names, and its relations of them."""
    named = EntityName.objects.filter(document=document).order_by("entity_id", "pk")
    rows = named.values_list("entity_id", "entity__name", "entity__kind", "name")
    entities: list[EntityRecord] = []
    places: dict[int, int] = {}
    for (entity, name, kind), group in groupby(rows, key=itemgetter(0, 1, 2)):
        places[entity] = len(entities)
        entities.append(EntityRecord(name=name, kind=kind, names=[row[-1] for row in group]))
    relations = Relation.objects.filter(document=document).order_by("pk").select_related("chunk")
    return entities, [
        RelationRecord(
            subject=places[each.subject_id],
            predicate=each.predicate,
            object=places[each.object_id],
            chunk=each.chunk.number,
            valid_from=each.valid_from,
            valid_to=each.valid_to,
        )
        for each in relations.iterator()
    ]


def restate(document: Document, chunks: Iterable[Chunk], record: DocumentRecord) -> None:
    """Insert what the record states, in the caller's transaction.

    Entities are those of the collection that have the same name and kind, made where there are
    none. By place and not by name as `knowledge.graph.write` has it: two kinds of things may be
    called the same.
    """
    named = {
        (key(each.name), each.kind): Named(each.name, each.kind, tuple(each.names))
        for each in record.entities
    }
    if not named:
        return
    known = stored(document.collection, named)
    ids = [known[key(each.name), each.kind] for each in record.entities]
    names = {
        (entity, key(name)): name
        for entity, each in zip(ids, record.entities, strict=True)
        for name in each.names
    }
    EntityName.objects.bulk_create(
        EntityName(entity_id=entity, document=document, name=name, key=made)
        for (entity, made), name in names.items()
    )
    by_number = {chunk.number: chunk for chunk in chunks}
    Relation.objects.bulk_create(
        (
            Relation(
                document=document,
                chunk=by_number[each.chunk],
                subject_id=ids[each.subject],
                object_id=ids[each.object],
                **each.model_dump(exclude={"chunk", "subject", "object"}),
            )
            for each in record.relations
        ),
        ignore_conflicts=True,
    )
