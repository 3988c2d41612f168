"""Scope: what a search may look into, and how much that is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.conf import settings

from knowledge.errors import UnknownCollection
from knowledge.search.confidence import SCALE, Bar
from knowledge.search.sql import array_literal, rows

# Below this many chunks they are counted when asked: the census may be a twentieth wrong.
COUNTED_BELOW = 200

COLLECTIONS = """
SELECT collection.name, only_by_name, collection.id, embedding_model, census.chunks,
    coalesce(configs, '{}'), threshold, (report ->> 'scale')::float8
FROM knowledge_collection AS collection
    LEFT JOIN knowledge_census AS census ON census.collection_id = collection.id
    LEFT JOIN knowledge_calibration AS calibration ON calibration.collection_id = collection.id
        AND calibration.model = embedding_model
"""
COUNT = """
SELECT count(*) FROM knowledge_chunk AS chunk
    JOIN knowledge_document AS document ON document.id = chunk.document_id
WHERE document.collection_id = %(collection)s
"""
MATCHING = """
SELECT coalesce(avg(CASE WHEN {condition} THEN 1.0 ELSE 0.0 END), 0)::float8
FROM knowledge_document AS document WHERE collection_id = ANY(%(collections)s::bigint[])
"""
# What a document must meet; one written for nobody in particular is for every audience.
LANGUAGE = "ARRAY[language::text, split_part(language, '-', 1)] && %(languages)s::text[]"
AUDIENCE = "audience IN ('', %(audience)s::text)"
DOCUMENTS = "document.id = ANY(%(documents)s::text[])"


class CollectionInfo(NamedTuple):
    """A collection, and what is known of it."""

    name: str
    is_apart: bool  # only searched by name
    id: int
    model: str  # whose vectors are searched
    chunks: int | None  # by the census
    configs: list[str]
    threshold: float | None  # None where nothing was calibrated
    scale: float | None

    @property
    def bar(self) -> Bar:
        """What its passages are measured against."""
        if self.threshold is None:
            return Bar(settings.SEARCH_CONFIDENCE_THRESHOLD)
        return Bar(self.threshold, self.scale or SCALE)


@dataclass(frozen=True)
class Scope:
    """The collections a search may look into, and the filters on their documents."""

    models: dict[str, list[int]]  # embedding model → ids of the collections that use it
    configs: list[str]  # text search configurations of the documents
    chunks: int  # about how many can be found, filters applied
    stored: int  # about how many there are in all collections
    bars: dict[int, Bar]  # of each collection by its id
    languages: list[str] = field(default_factory=list)
    audience: str = ""
    documents: list[str] = field(default_factory=list)  # ids; empty: all

    @property
    def collections(self) -> list[int]:
        """Ids of the collections."""
        return [each for ids in self.models.values() for each in ids]

    @property
    def is_foreign(self) -> bool:
        """Whether some of it is searched across languages."""
        return any(bar.is_foreign for bar in self.bars.values())

    @property
    def condition(self) -> str:
        """What the columns of a document must meet, in SQL; empty without filters."""
        conditions = [
            (LANGUAGE, bool(self.languages)),
            (AUDIENCE, bool(self.audience)),
            (DOCUMENTS, bool(self.documents)),
        ]
        return " AND ".join(condition for condition, is_asked in conditions if is_asked)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of the condition, and the collections."""
        return {
            "collections": array_literal(self.collections),
            "languages": self.languages,
            "audience": self.audience,
            "documents": self.documents,
        }

    def unfiltered(self) -> "Scope":
        """Return the scope without its filters."""
        return replace(self, languages=[], audience="", documents=[])


def scope_of(
    names: Sequence[str],
    languages: Sequence[str] = (),
    audience: str = "",
    documents: Sequence[str] = (),
) -> Scope:
    """Return the scope of the named collections; when none is named, of all but those apart.

    `documents` are ids; without any, all documents are meant.

    Raises UnknownCollection, which lists those that exist.
    """
    collections = {row[0]: CollectionInfo(*row) for row in rows(COLLECTIONS)}
    unknown = set(names) - collections.keys()
    if unknown:
        raise UnknownCollection(unknown, collections)
    default_names = [name for name, collection in collections.items() if not collection.is_apart]
    selected = [collections[name] for name in dict.fromkeys(names or default_names)]
    models: dict[str, list[int]] = {}
    for collection in selected:
        models.setdefault(collection.model, []).append(collection.id)
    chunks = sum(chunk_count(collection) for collection in selected)
    scope = Scope(
        models=models,
        configs=sorted({config for collection in selected for config in collection.configs}),
        chunks=chunks,
        stored=max(chunks, sum(collection.chunks or 0 for collection in collections.values())),
        bars={collection.id: collection.bar for collection in selected},
        languages=[collection.lower() for collection in languages],
        audience=audience,
        documents=list(documents),
    )
    return narrow(scope) if scope.condition else scope


def chunk_count(collection: CollectionInfo) -> int:
    """Return how many chunks the collection has, from the census where that is near enough."""
    if collection.chunks is not None and collection.chunks > COUNTED_BELOW:
        return collection.chunks
    ((count,),) = rows(COUNT, {"collection": collection.id})
    return int(count)


def narrow(scope: Scope) -> Scope:
    """Return the scope with about as many chunks as its filters leave."""
    ((share,),) = rows(MATCHING.format(condition=scope.condition), scope.values)
    return replace(scope, chunks=round(scope.chunks * share))
