"""Scope: the collections a search may look into."""

from collections.abc import Sequence

from knowledge.errors import UnknownCollection
from knowledge.models import Collection


def collection_ids(names: Sequence[str]) -> list[int]:
    """Return the ids of the named collections, of every collection when none is named.

    Raises UnknownCollection, which lists those that exist.
    """
    known = dict(Collection.objects.values_list("name", "id"))
    unknown = set(names) - known.keys()
    if unknown:
        raise UnknownCollection(unknown, known)
    return [known[name] for name in (names or known)]
