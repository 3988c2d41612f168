"""Reindexing: another embedding model for a collection, without a question failing meanwhile.

The new model's vectors are filled in beside the old ones, both are compared, and only then is the
collection switched, by changing one word. The old vectors stay, so that it can go back.
"""

from dataclasses import dataclass

from django.db import transaction

from knowledge.embedding import MODEL, models
from knowledge.ingestion.storing import take_turns
from knowledge.models import ChunkVector, Collection, DocumentVector, SectionVector
from knowledge.reindexing.comparing import Comparison, compare
from knowledge.reindexing.errors import InUse, NoWayBack, RecallLost
from knowledge.reindexing.filling import Watch, fill, missing
from knowledge.reindexing.planning import Plan, plan, price
from knowledge.reindexing.switching import switch
from knowledge.search import indexes

__all__ = [
    "Comparison",
    "InUse",
    "NoWayBack",
    "Outcome",
    "Plan",
    "RecallLost",
    "back",
    "drop",
    "fill",
    "missing",
    "others",
    "plan",
    "price",
    "reindex",
]


@dataclass(frozen=True)
class Outcome:
    """What a reindex did."""

    before: str
    after: str
    filled: int  # chunks
    comparison: Comparison | None


def reindex(
    collection: Collection, name: str, *, force: bool = False, watch: Watch | None = None
) -> Outcome:
    """Let the collection be searched by the vectors of the model of that name.

    May be interrupted at any time and called again: it goes on where it was. Raises RecallLost,
    when the new vectors find less and `force` was not given; then everything stays as it was, and
    the new vectors wait. Raises EmbeddingUnavailable. Must run outside a transaction.
    """
    embedder, before = models.named(name), collection.embedding_model
    filled = fill(collection, embedder, watch)
    indexes.ensure(embedder.name, embedder.dimensions)
    comparison = None
    if embedder.name != before:
        comparison = compare(collection, before, embedder.name)
        if not (comparison.holds or force):
            raise RecallLost(comparison.verdict)
        filled += switch(collection, embedder)
    return Outcome(before, embedder.name, filled, comparison)


def back(collection: Collection, name: str = "") -> Outcome:
    """Go back to a model whose vectors were kept; at once, if no document came since.

    Raises NoWayBack when there are none, or several and no `name` says which.
    """
    before, known = collection.embedding_model, others(collection)
    if name:
        known = [each for each in known if each == models.full_name(name)]
    if not known:
        raise NoWayBack(
            f"{collection.name!r} has no vectors of {name or 'another model'} to go back to."
        )
    if len(known) > 1:
        raise NoWayBack(
            f"{collection.name!r} has vectors of several other models: {', '.join(known)}. "
            "Say which with --embedding-model."
        )
    embedder = models.named(known[0])
    filled = fill(collection, embedder)
    indexes.ensure(embedder.name, embedder.dimensions)
    filled += switch(collection, embedder)
    return Outcome(before, embedder.name, filled, None)


def others(collection: Collection) -> list[str]:
    """Return the models whose vectors the collection has beside those in use."""
    found = DocumentVector.objects.filter(collection=collection)
    names = found.exclude(model=collection.embedding_model).values_list("model", flat=True)
    return sorted(names.distinct())


def drop(collection: Collection, name: str) -> int:
    """Remove the collection's vectors of a model it does not use; return how many those were.

    Raises InUse. Must run outside a transaction.
    """
    with transaction.atomic():
        take_turns(collection)
        now = Collection.objects.select_for_update().get(pk=collection.pk)
        if name == now.embedding_model:
            raise InUse(
                f"{collection.name!r} is searched by the vectors of {name}: "
                "change its model first, with --embedding-model."
            )
        kinds = (ChunkVector, SectionVector, DocumentVector)
        gone = sum(
            kind.objects.filter(collection=collection, model=name).delete()[0] for kind in kinds
        )
    if name != MODEL and not any(kind.objects.filter(model=name).exists() for kind in kinds):
        indexes.drop(name)
    return gone
