"""Collections: found by their names."""

from collections.abc import Iterable

from knowledge.errors import UnknownCollection
from knowledge.models import Collection


def named(names: Iterable[str]) -> list[Collection]:
    """Return the collections of these names; raise UnknownCollection naming those there aren't."""
    wanted = {name.replace("\0", "\N{REPLACEMENT CHARACTER}") for name in names}
    found = list(Collection.objects.filter(name__in=wanted))
    if unknown := wanted - {collection.name for collection in found}:
        raise UnknownCollection(unknown, Collection.objects.values_list("name", flat=True))
    return found
