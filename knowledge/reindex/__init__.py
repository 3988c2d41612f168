"""Reindex: another embedding model for a collection, without a question failing meanwhile.

The new model's vectors are filled in beside the old ones, both are compared, and only then is the
collection switched, by changing one word. The old vectors stay, so that it can go back.
"""

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from django.db import transaction
from django.db.models import Sum
from genai_prices import Usage, calc_price

from knowledge import providers
from knowledge.embedding import MODEL, Embedder, registry
from knowledge.errors import KnowledgeError
from knowledge.identifiers import MULTILINGUAL_MODEL, OWN_MODELS
from knowledge.ingestion.backfill import Watch, fill, missing, text
from knowledge.ingestion.store import lock_collection
from knowledge.models import Chunk, ChunkVector, Collection, DocumentVector, Section, SectionVector
from knowledge.reindex.switchover import Comparison, compare, switch
from knowledge.search import vector_indexes

SAMPLE = 16  # chunks
VECTORS = (ChunkVector, SectionVector, DocumentVector)


class RecallLost(KnowledgeError):
    """The new model finds less than the one in use."""


class NoWayBack(KnowledgeError):
    """There are no vectors of another model to go back to."""


class InUse(KnowledgeError):
    """The vectors are those that are searched."""


@dataclass(frozen=True)
class Plan:
    """What there is, what is to be encoded, and what that takes."""

    documents: int
    sections: int
    chunks: int
    missing: int  # chunks to encode
    dimensions: int
    tokens: int  # of what is to be encoded, as far as known
    seconds: float  # of encoding, from a sample
    dollars: float | None  # None when nobody knows the price
    cut: int  # chunks longer than the model sees

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


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
    embedder, before = registry.named(name), collection.embedding_model
    filled = fill(collection, embedder, watch)
    vector_indexes.ensure(embedder.name, embedder.dimensions)
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
    before, models = collection.embedding_model, other_models(collection)
    # Unless it is named: that model's stand beside the others for questions in other languages.
    wanted = {registry.full_name(name)} if name else {*models} - {MULTILINGUAL_MODEL}
    models = [model for model in models if model in wanted]
    if not models:
        raise NoWayBack(
            f"{collection.name!r} has no vectors of {name or 'another model'} to go back to."
        )
    if len(models) > 1:
        raise NoWayBack(
            f"{collection.name!r} has vectors of several other models: {', '.join(models)}. "
            "Say which with --embedding-model."
        )
    embedder = registry.named(models[0])
    filled = fill(collection, embedder)
    vector_indexes.ensure(embedder.name, embedder.dimensions)
    filled += switch(collection, embedder)
    return Outcome(before, embedder.name, filled, None)


def other_models(collection: Collection) -> list[str]:
    """Return the models whose vectors the collection has beside those in use."""
    vectors = DocumentVector.objects.filter(collection=collection)
    names = vectors.exclude(model=collection.embedding_model).values_list("model", flat=True)
    return sorted(names.distinct())


def drop(collection: Collection, name: str) -> int:
    """Remove the collection's vectors of a model it does not use; return how many those were.

    Raises InUse. Must run outside a transaction.
    """
    with transaction.atomic():
        lock_collection(collection)
        current = Collection.objects.select_for_update().get(pk=collection.pk)
        if name == current.embedding_model:
            raise InUse(
                f"{collection.name!r} is searched by the vectors of {name}: "
                "change its model first, with --embedding-model."
            )
        rows = [table.objects.filter(collection=collection, model=name) for table in VECTORS]
        removed = sum(vectors.delete()[0] for vectors in rows)
    if name != MODEL and not any(table.objects.filter(model=name).exists() for table in VECTORS):
        vector_indexes.drop(name)
    return removed


def plan(collection: Collection, embedder: Embedder) -> Plan:
    """Return what filling the collection with the model's vectors takes.

    Encodes a sample of sixteen chunks for it, which costs as much. Raises EmbeddingUnavailable.
    """
    chunks = Chunk.objects.filter(document__collection=collection)
    lacking = missing(collection, embedder.name)
    count = lacking.count()
    counted = lacking.aggregate(tokens=Sum("tokens"))["tokens"] or 0
    seconds_each, tokens_each = sample(collection, embedder)
    tokens = round(counted * tokens_each)
    return Plan(
        documents=collection.documents.count(),
        sections=Section.objects.filter(document__collection=collection).count(),
        chunks=chunks.count(),
        missing=count,
        dimensions=embedder.dimensions,
        tokens=tokens,
        seconds=round(count * seconds_each, 1),
        dollars=price(embedder.name, tokens),
        cut=chunks.filter(tokens__gt=embedder.window).count(),
    )


def sample(collection: Collection, embedder: Embedder) -> tuple[float, float]:
    """Return the seconds per chunk, and how many of its tokens the model counts for one of ours."""
    # In the order of their digests, which is none.
    chunks = list(missing(collection, embedder.name).order_by("sha1", "pk")[:SAMPLE])
    if not chunks:
        return 0.0, 1.0
    embedder.encode(["The first one loads the model or opens the connection."])
    spent, begin = embedder.spent, perf_counter()
    embedder.encode([text(chunk) for chunk in chunks])
    seconds = (perf_counter() - begin) / len(chunks)
    spent = embedder.spent - spent
    return seconds, spent / sum(chunk.tokens for chunk in chunks) if spent else 1.0


def price(model: str, tokens: int) -> float | None:
    """Return the dollars that so many tokens cost, None when nobody knows."""
    if model in OWN_MODELS:
        return 0.0
    name, provider = providers.parse_full_model_name(model)
    if provider in providers.OWN:
        return 0.0
    try:
        calculation = calc_price(Usage(input_tokens=tokens), model_ref=name, provider_id=provider)
    except LookupError:
        return None
    return float(calculation.total_price)
