"""Scope: what a search may look into, and how much that is."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge.errors import UnknownCollection
from knowledge.search.statements import array, rows

# Below this many chunks they are counted when asked: the census may be a twentieth wrong.
FEW = 200

COLLECTIONS = """
SELECT collection.name, only_by_name,
    collection.id, embedding_model, census.chunks, coalesce(configs, '{}')
FROM knowledge_collection AS collection
    LEFT JOIN knowledge_census AS census ON census.collection_id = collection.id
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


@dataclass(frozen=True)
class Scope:
    """The collections a search may look into, and the filters on their documents."""

    models: dict[str, list[int]]  # embedding model → ids of the collections that use it
    configs: list[str]  # text search configurations of the documents
    chunks: int  # about how many can be found, filters applied
    stored: int  # about how many there are in all collections
    languages: list[str] = field(default_factory=list)
    audience: str = ""

    @property
    def collections(self) -> list[int]:
        """Ids of the collections."""
        return [each for ids in self.models.values() for each in ids]

    @property
    def condition(self) -> str:
        """What the columns of a document must meet, in SQL; empty without filters."""
        wanted = [(LANGUAGE, bool(self.languages)), (AUDIENCE, bool(self.audience))]
        return " AND ".join(condition for condition, is_asked in wanted if is_asked)

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of the condition, and the collections."""
        return {
            "collections": array(self.collections),
            "languages": self.languages,
            "audience": self.audience,
        }

    def unfiltered(self) -> "Scope":
        """Return the scope without its filters."""
        return replace(self, languages=[], audience="")


def scope_of(names: Sequence[str], languages: Sequence[str] = (), audience: str = "") -> Scope:
    """Return the scope of the named collections; when none is named, of all but those apart.

    Raises UnknownCollection, which lists those that exist.
    """
    there = rows(COLLECTIONS)
    known = {name: rest for name, _, *rest in there}
    usual = [name for name, is_apart, *_ in there if not is_apart]
    unknown = set(names) - known.keys()
    if unknown:
        raise UnknownCollection(unknown, known)
    models: dict[str, list[int]] = {}
    chosen = [known[name] for name in dict.fromkeys(names or usual)]
    for collection, model, _, _ in chosen:
        models.setdefault(model, []).append(collection)
    chunks = sum(counted(collection, chunks) for collection, _, chunks, _ in chosen)
    found = Scope(
        models=models,
        configs=sorted({config for *_, configs in chosen for config in configs}),
        chunks=chunks,
        stored=max(chunks, sum(chunks or 0 for _, _, chunks, _ in known.values())),
        languages=[each.lower() for each in languages],
        audience=audience,
    )
    return narrowed(found) if found.condition else found


def counted(collection: int, chunks: int | None) -> int:
    """Return how many chunks the collection has, from the census where that is near enough."""
    if chunks is not None and chunks > FEW:
        return chunks
    ((count,),) = rows(COUNT, {"collection": collection})
    return int(count)


def narrowed(found: Scope) -> Scope:
    """Return the scope with about as many chunks as its filters leave."""
    ((share,),) = rows(MATCHING.format(condition=found.condition), found.values)
    return replace(found, chunks=round(found.chunks * share))
