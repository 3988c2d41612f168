"""Words: an embedding model that knows texts by their words, and the vectors there are of it."""

import re
from zlib import crc32

from knowledge.models import ChunkVector, Collection, DocumentVector, SectionVector

DIMENSIONS = 512
OTHER = "words@own"
KINDS = (ChunkVector, SectionVector, DocumentVector)


def of_words(text: str) -> list[float]:
    """A vector that has something in common with those of texts with the same words."""
    vector = [0.01] * DIMENSIONS
    for word in re.findall(r"\w{4,}", text.lower()):
        vector[crc32(word.encode()) % DIMENSIONS] += 1.0
    return vector


def vectors(model: str) -> list[int]:
    """How many there are of the model, per kind."""
    return [kind.objects.filter(model=model).count() for kind in KINDS]


def model_of(collection: Collection) -> str:
    """The model that the collection is searched by now."""
    collection.refresh_from_db()
    return collection.embedding_model
