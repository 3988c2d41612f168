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
from knowledge.models import Chunk, Collection, Document, Entity, EntityName, Relation
from knowledge.parsing import Page
from knowledge.search.scope import scope_of

LONGEST_NAME, LONGEST_KIND, LONGEST_PREDICATE = 200, 40, 80
APART = re.compile(r"[\W_]+")
# A name of fewer letters stands in most questions by accident.
SHORTEST_IN_QUESTION = 3
LIMIT = 20

# Relations between two things that were asked for come first, then what began last.
SEARCH = """
WITH asked AS (
    SELECT DISTINCT entity.id FROM knowledge_entityname AS name
        JOIN knowledge_entity AS entity ON entity.id = name.entity_id
    WHERE entity.collection_id = ANY(%(collections)s) AND {condition}
), seen AS (
    SELECT id FROM knowledge_document AS document
    WHERE collection_id = ANY(%(collections)s) AND {visible}
)
SELECT subject.name, subject.kind, predicate, object.name, object.kind, valid_from, valid_to,
    relation.document_id, chunk_id
FROM knowledge_relation AS relation
    JOIN knowledge_entity AS subject ON subject.id = relation.subject_id
    JOIN knowledge_entity AS object ON object.id = relation.object_id
    JOIN seen ON seen.id = relation.document_id
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

NAMED_BY = "SELECT DISTINCT entity_id FROM knowledge_entityname WHERE document_id = ANY(%s)"
# Relations need no look: who is named in one is named by its document.
PRUNE = """
DELETE FROM knowledge_entity AS entity WHERE id = ANY(%s) AND NOT EXISTS (
    SELECT FROM knowledge_entityname AS name WHERE name.entity_id = entity.id
)
"""


@dataclass(frozen=True)
class NamedEntity:
    """An entity as a document names it."""

    name: str
    kind: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class StatedRelation:
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

    entities: tuple[NamedEntity, ...] = ()
    relations: tuple[StatedRelation, ...] = ()
    warnings: tuple[str, ...] = ()  # for who ingests it: what did not work


@dataclass(frozen=True)
class FoundRelation:
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


def key(name: str) -> str:
    """Return the name in lower case, compatible letters made one, without punctuation."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return APART.sub(" ", plain).strip()[:LONGEST_NAME].strip()


def graph_search(
    query: str | Sequence[str],
    *,
    collections: Sequence[str] = (),
    languages: Sequence[str] = (),
    audience: str = "",
    documents: Sequence[str] = (),
    at: date | None = None,
    limit: int = LIMIT,
) -> list[FoundRelation]:
    """Return at most `limit` relations of the things that are asked for.

    `query` is a question, whose words are looked up among all names, or a list of names.
    `collections`, `languages`, `audience` and `documents` are as for `knowledge.search`; `at`
    leaves out what does not hold on that day. Raises UnknownCollection.
    """
    scope = scope_of(collections, languages, audience, documents)
    is_question = isinstance(query, str)
    values: dict[str, Any] = scope.values | {
        "collections": scope.collections,
        "keys": [] if is_question else [key(name) for name in query],
        "question": key(query) if isinstance(query, str) else "",
        "shortest": SHORTEST_IN_QUESTION,
        "at": at,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        condition = IN_QUESTION if is_question else BY_NAME
        visible = scope.condition or "TRUE"
        cursor.execute(SEARCH.format(condition=condition, visible=visible), values)
        return [FoundRelation(*row) for row in cursor.fetchall()]


Extractor = Callable[[Page, Sequence[Part]], Graph]

_extractors: list[Extractor] = []


def register(extractor: Extractor) -> None:
    """Let `extractor(page, parts)` say what a document states. It takes time, and raises nothing.

    `parts` are the chunks as they will be stored.
    """
    _extractors.append(extractor)


def extract(page: Page, parts: Sequence[Part]) -> Graph:
    """Return what the page states; nothing unless KNOWLEDGE_GRAPH is set.

    It is called once per new or changed document, while no transaction is open, and for several
    at once in threads.
    """
    extractors = _extractors if settings.KNOWLEDGE_GRAPH else []
    graphs = [extractor(page, parts) for extractor in extractors]
    return Graph(
        entities=tuple(entity for graph in graphs for entity in graph.entities),
        relations=tuple(relation for graph in graphs for relation in graph.relations),
        warnings=tuple(warning for graph in graphs for warning in graph.warnings),
    )


def write(document: Document, chunks: Sequence[Chunk], graph: Graph) -> None:
    """Replace what is known from the document, in the caller's transaction.

    A relation is left out when one of its ends is no entity, or its chunk is none.
    """
    before = entities_named_by([document.pk])
    if before:
        Relation.objects.filter(document=document).delete()
        EntityName.objects.filter(document=document).delete()
    if graph.entities:
        ids = write_entities(document, graph.entities)
        write_relations(document, chunks, graph.relations, ids)
    prune(before)


def write_entities(document: Document, entities: Iterable[NamedEntity]) -> dict[str, int]:
    """Insert those that are new with their names; return the entities' ids by the key of a name."""
    # Of several with the same name and kind, the last.
    distinct = {(key(each.name), each.kind[:LONGEST_KIND]): each for each in entities}
    nameable = {place: entity for place, entity in distinct.items() if place[0]}
    ids = entity_ids(
        document.collection, [(entity.name, kind) for (_, kind), entity in nameable.items()]
    )
    by_name: dict[str, int] = {}
    names = []
    for pk, ((own, _), entity) in zip(ids, nameable.items(), strict=True):
        for name in filter(key, (entity.name, *entity.aliases)):
            names.append((pk, name))
            by_name.setdefault(key(name), pk)
        # Its own name means an entity more than another's alias does.
        by_name[own] = pk
    write_names(document, names)
    return by_name


def entity_ids(collection: Collection, entities: Sequence[tuple[str, str]]) -> list[int]:
    """Return the id of each (name, kind), inserted where it is missing."""
    keys = [(key(name), kind) for name, kind in entities]
    Entity.objects.bulk_create(
        [
            Entity(
                collection=collection, name=name.strip()[:LONGEST_NAME], key=key(name), kind=kind
            )
            for name, kind in entities
        ],
        ignore_conflicts=True,
    )
    rows = Entity.objects.filter(collection=collection, key__in=[name for name, _ in keys])
    ids = {(name, kind): pk for pk, name, kind in rows.values_list("pk", "key", "kind")}
    return [ids[each] for each in keys]


def write_names(document: Document, names: Iterable[tuple[int, str]]) -> None:
    """Insert by which names the document calls entities, each in its last spelling."""
    spellings = {(entity, key(name)): name.strip()[:LONGEST_NAME] for entity, name in names}
    EntityName.objects.bulk_create(
        EntityName(entity_id=entity, document=document, name=name, key=its_key)
        for (entity, its_key), name in spellings.items()
    )


def write_relations(
    document: Document,
    chunks: Sequence[Chunk],
    relations: Iterable[StatedRelation],
    ids: dict[str, int],
) -> None:
    """Insert the relations between entities of those names."""
    Relation.objects.bulk_create(
        [
            Relation(
                document=document,
                chunk=chunks[relation.part],
                subject_id=ids[key(relation.subject)],
                predicate=" ".join(relation.predicate.split())[:LONGEST_PREDICATE],
                object_id=ids[key(relation.object)],
                valid_from=relation.valid_from,
                valid_to=relation.valid_to,
            )
            for relation in relations
            if key(relation.subject) in ids
            and key(relation.object) in ids
            and 0 <= relation.part < len(chunks)
        ],
        ignore_conflicts=True,
    )


def entities_named_by(documents: Iterable[str]) -> list[int]:
    """Return the ids of the entities that the documents with these ids name."""
    with connection.cursor() as cursor:
        cursor.execute(NAMED_BY, [list(documents)])
        return [entity for (entity,) in cursor.fetchall()]


def prune(entities: Iterable[int]) -> None:
    """Delete those of the entities that no document names any more."""
    if ids := list(entities):
        with connection.cursor() as cursor:
            cursor.execute(PRUNE, [ids])
