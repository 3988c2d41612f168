"""Embedding: turns texts into vectors.

`encode` uses the model of this machine, always; what a collection's vectors were made with is
`registry.named(collection.embedding_model)`.
"""

import os

from knowledge.embedding import registry
from knowledge.embedding.embedder import Embedder, Kind, Vectors
from knowledge.embedding.local import (
    DIMENSIONS,
    MODEL,
    encode,
    encode_any_language,
    similarities,
    token_states,
)

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
    "token_states",
]

# Neither the runtime's threads nor a connection survive a fork: a child makes its own.
os.register_at_fork(after_in_child=registry.forget)
