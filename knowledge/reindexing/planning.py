"""Planning: what a change of embedding model will take, before anything is changed."""

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from django.db.models import Sum
from genai_prices import Usage, calc_price

from knowledge import providers
from knowledge.embedding import MODEL, Embedder
from knowledge.models import Chunk, Collection, Section
from knowledge.reindexing.filling import missing, text

SAMPLE = 16  # chunks


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
    embedder.encode([text(each) for each in chunks])
    seconds = (perf_counter() - begin) / len(chunks)
    spent = embedder.spent - spent
    return seconds, spent / sum(each.tokens for each in chunks) if spent else 1.0


def price(model: str, tokens: int) -> float | None:
    """Return the dollars that so many tokens cost, None when nobody knows."""
    if model == MODEL:
        return 0.0
    name, provider = providers.split(model)
    if provider in providers.OWN:
        return 0.0
    try:
        found = calc_price(Usage(input_tokens=tokens), model_ref=name, provider_id=provider)
    except LookupError:
        return None
    return float(found.total_price)
