"""Writing: what a document states into the graph of its collection, and out of it again."""

from collections.abc import Iterable, Sequence

from django.db import connection

from knowledge.graph.keys import LONGEST, key
from knowledge.graph.stating import Graph, Named, Stated
from knowledge.models import Chunk, Collection, Document, Entity, EntityName, Relation

TOUCHED = "SELECT DISTINCT entity_id FROM knowledge_entityname WHERE document_id = ANY(%s)"
# Relations need no look: who is named in one is named by its document.
PRUNE = """
DELETE FROM knowledge_entity AS entity WHERE id = ANY(%s) AND NOT EXISTS (
    SELECT FROM knowledge_entityname AS name WHERE name.entity_id = entity.id
)
"""


def write(document: Document, chunks: Sequence[Chunk], graph: Graph) -> None:
    """Replace what is known from the document, in the caller's transaction.

    A relation is left out when one of its ends is no entity, or its chunk is none.
    """
    before = touched([document.pk])
    if before:
        Relation.objects.filter(document=document).delete()
        EntityName.objects.filter(document=document).delete()
    if graph.entities:
        called = write_entities(document, graph.entities)
        write_relations(document, chunks, graph.relations, called)
    prune(before)


def write_entities(document: Document, entities: Iterable[Named]) -> dict[str, int]:
    """Insert those that are new with their names; return the entities' ids by the key of a name."""
    there = {(key(each.name), each.kind[:40]): each for each in entities if key(each.name)}
    known = stored(document.collection, there)
    called: dict[str, int] = {}
    names = {}
    for place, entity in there.items():
        for name in (entity.name, *entity.aliases):
            if key(name):
                names[known[place], key(name)] = name.strip()[:LONGEST]
                # Its own name means an entity more than another's alias does.
                called.setdefault(key(name), known[place])
        called[place[0]] = known[place]
    EntityName.objects.bulk_create(
        EntityName(entity_id=entity, document=document, name=name, key=made)
        for (entity, made), name in names.items()
    )
    return called


def stored(
    collection: Collection, entities: dict[tuple[str, str], Named]
) -> dict[tuple[str, str], int]:
    """Return the id of each entity by key and kind, inserted where it is missing."""
    Entity.objects.bulk_create(
        [
            Entity(collection=collection, name=each.name.strip()[:LONGEST], key=made, kind=kind)
            for (made, kind), each in entities.items()
        ],
        ignore_conflicts=True,
    )
    found = Entity.objects.filter(collection=collection, key__in=[made for made, _ in entities])
    return {(made, kind): pk for pk, made, kind in found.values_list("pk", "key", "kind")}


def write_relations(
    document: Document, chunks: Sequence[Chunk], relations: Iterable[Stated], called: dict[str, int]
) -> None:
    """Insert the relations between entities of those names."""
    Relation.objects.bulk_create(
        [
            Relation(
                document=document,
                chunk=chunks[each.part],
                subject_id=called[key(each.subject)],
                predicate=" ".join(each.predicate.split())[:80],
                object_id=called[key(each.object)],
                valid_from=each.valid_from,
                valid_to=each.valid_to,
            )
            for each in relations
            if key(each.subject) in called
            and key(each.object) in called
            and 0 <= each.part < len(chunks)
        ],
        ignore_conflicts=True,
    )


def touched(documents: Iterable[str]) -> list[int]:
    """Return the ids of the entities that the documents with these ids name."""
    with connection.cursor() as cursor:
        cursor.execute(TOUCHED, [list(documents)])
        return [entity for (entity,) in cursor.fetchall()]


def prune(entities: Iterable[int]) -> None:
    """Delete those of the entities that no document names any more."""
    if going := list(entities):
        with connection.cursor() as cursor:
            cursor.execute(PRUNE, [going])
