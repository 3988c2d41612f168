"""Searching: the relations of things that a question names."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from knowledge.collections import named
from knowledge.graph.keys import key
from knowledge.models import Collection

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
        places = [each.pk for each in named(collections)]
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
