"""Embedding: turns texts into vectors.

`encode` uses the model of this machine, always; what a collection's vectors were made with is
`registry.named(collection.embedding_model)`.
"""

import os
from collections.abc import Sequence

import numpy as np
from django.conf import settings

from knowledge.embedding import registry
from knowledge.embedding.embedder import Embedder, Kind, Vectors
from knowledge.embedding.local import DIMENSIONS, LOCAL, MIDDLE, MODEL, MULTILINGUAL, SPREAD

__all__ = [
    "DIMENSIONS",
    "MODEL",
    "Embedder",
    "Kind",
    "Vectors",
    "encode",
    "encode_any_language",
    "registry",
    "similarities",
]

# Neither the runtime's threads nor a connection survive a fork: a child makes its own.
os.register_at_fork(after_in_child=registry.forget)


def encode(texts: Sequence[str]) -> Vectors:
    """Return the vectors of the texts: float32, (number of texts, 384), each of length 1.

    They are exact, as those of questions are. Texts are cut at 256 tokens. Raises
    EmbeddingUnavailable when the model cannot be loaded.
    """
    return LOCAL.encode(texts, kind="question")


def encode_any_language(texts: Sequence[str]) -> Vectors:
    """Return vectors, as `encode` does, of texts that may be in any language.

    Of the multilingual model where CROSS_LINGUAL lets it be asked, else of the local one, which
    was made for English. Raises EmbeddingUnavailable.
    """
    model = MULTILINGUAL if settings.CROSS_LINGUAL else LOCAL
    return model.encode(texts, kind="question")


def similarities(question: str, texts: Sequence[str], *, is_foreign: bool) -> Vectors:
    """Return the cosine of the question with each text: float32, (number of texts,).

    `is_foreign` says that they are in different languages: the multilingual model is asked where
    CROSS_LINGUAL lets it, and its cosines come as different as the local model's are within one.
    Raises EmbeddingUnavailable.
    """
    if is_foreign and settings.CROSS_LINGUAL and texts:
        (asked,) = MULTILINGUAL.encode([question], kind="question")
        cosines: Vectors = MULTILINGUAL.encode(texts, kind="passage") @ asked
        return np.asarray(SPREAD * (cosines - MIDDLE))
    vectors = encode([question, *texts])
    return np.asarray(vectors[1:] @ vectors[0])
