"""Graph: entities and relations that documents state, with the time they hold."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.conf import settings
from django.db import connection

from knowledge.chunking import Part
from knowledge.collections import collections_named
from knowledge.models import Chunk, Collection, Document, Entity, EntityName, Relation
from knowledge.parsing import Page

LONGEST = 200
APART = re.compile(r"[\W_]+")


def key(name: str) -> str:
    """Return the name in lower case, compatible letters made one, without punctuation."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return APART.sub(" ", plain).strip()[:LONGEST].strip()


# A name of fewer letters stands in most questions by accident.
SHORTEST = 3
LIMIT = 20

# Relations between two things that were asked for come first, then what began last.
STATEMENT = """
WITH asked AS (
    SELECT DISTINCT entity.id FROM knowledge_entityname AS name
        JOIN knowledge_entity AS entity ON entity.id = name.entity_id
    WHERE entity.collection_id = ANY(%(collections)s) AND {condition}
)
SELECT subject.name, subject.kind, predicate, object.name, object.kind, valid_from, valid_to,
    relation.document_id, chunk_id
FROM knowledge_relation AS relation
    JOIN knowledge_entity AS subject ON subject.id = relation.subject_id
    JOIN knowledge_entity AS object ON object.id = relation.object_id
WHERE (subject_id IN (SELECT id FROM asked) OR object_id IN (SELECT id FROM asked))
    AND (%(at)s::date IS NULL OR (
        coalesce(valid_from, '-infinity') <= %(at)s::date
        AND coalesce(valid_to, 'infinity') >= %(at)s::date
    ))
ORDER BY subject_id IN (SELECT id FROM asked) AND object_id IN (SELECT id FROM asked) DESC,
    valid_from DESC NULLS LAST, relation.id
LIMIT %(limit)s
"""
BY_NAME = "name.key = ANY(%(keys)s)"
# The words of the name stand in the question one after the other.
IN_QUESTION = """length(name.key) >= %(shortest)s
    AND position(' ' || name.key || ' ' IN ' ' || %(question)s || ' ') > 0"""


@dataclass(frozen=True)
class Found:
    """A relation, and the chunk of the document that states it."""

    subject: str
    subject_kind: str
    predicate: str
    object: str
    object_kind: str
    valid_from: date | None
    valid_to: date | None
    document_id: str
    chunk_id: int


def graph_search(
    asked: str | Sequence[str],
    *,
    collections: Sequence[str] = (),
    at: date | None = None,
    limit: int = LIMIT,
) -> list[Found]:
    """Return at most `limit` relations of the things that are asked for.

    `asked` is a question, whose words are looked up among all names, or a list of names.
    `collections` as for `knowledge.search`; `at` leaves out what does not hold on that day.
    Raises UnknownCollection.
    """
    if collections:
        places = [each.pk for each in collections_named(collections)]
    else:
        usual = Collection.objects.filter(only_by_name=False)
        places = list(usual.values_list("pk", flat=True))
    is_question = isinstance(asked, str)
    values: dict[str, Any] = {
        "collections": places,
        "keys": [] if is_question else [key(name) for name in asked],
        "question": key(asked) if isinstance(asked, str) else "",
        "shortest": SHORTEST,
        "at": at,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        condition = IN_QUESTION if is_question else BY_NAME
        cursor.execute(STATEMENT.format(condition=condition), values)
        return [Found(*row) for row in cursor.fetchall()]


@dataclass(frozen=True)
class Named:
    """An entity as a document names it."""

    name: str
    kind: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stated:
    """A relation between two entities, each by one of its names."""

    subject: str
    predicate: str
    object: str
    part: int  # place of the chunk that says so, from 0
    valid_from: date | None = None
    valid_to: date | None = None  # the last day


@dataclass(frozen=True)
class Graph:
    """What one document states."""

    entities: tuple[Named, ...] = ()
    relations: tuple[Stated, ...] = ()
    warnings: tuple[str, ...] = ()  # for who ingests it: what did not work


Drawer = Callable[[Page, Sequence[Part]], Graph]

_drawers: list[Drawer] = []


def register(drawer: Drawer) -> None:
    """Let `drawer(page, parts)` say what a document states. It takes its time, and raises nothing.

    `parts` are the chunks as they will be stored.
    """
    _drawers.append(drawer)


def draw(page: Page, parts: Sequence[Part]) -> Graph:
    """Return what the page states; nothing unless KNOWLEDGE_GRAPH is set.

    It is called once per new or changed document, while no transaction is open, and for several
    at once in threads.
    """
    drawn = [drawer(page, parts) for drawer in _drawers] if settings.KNOWLEDGE_GRAPH else []
    return Graph(
        entities=tuple(each for graph in drawn for each in graph.entities),
        relations=tuple(each for graph in drawn for each in graph.relations),
        warnings=tuple(each for graph in drawn for each in graph.warnings),
    )


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


__all__ = [
    "Found",
    "Graph",
    "Named",
    "Stated",
    "draw",
    "graph_search",
    "prune",
    "register",
    "touched",
    "write",
]
