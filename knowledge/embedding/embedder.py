"""Embedder: what every embedding model can do, wherever it runs."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
# Some models want a question worded unlike the passages it is compared with.
Kind = Literal["passage", "question"]

# What the specification of collections allows, and what the vector indexes can hold.
FEWEST_DIMENSIONS, MOST_DIMENSIONS = 384, 4096


class Embedder(Protocol):
    """One embedding model; safe to use from several threads."""

    @property
    def name(self) -> str:
        """As it is stored with its vectors: `model`, or `model@provider`."""

    @property
    def dimensions(self) -> int:
        """How long its vectors are; a model nobody knows is asked. Raises EmbeddingUnavailable."""

    @property
    def window(self) -> int:
        """How many tokens it sees of a text, as `count_tokens` counts them."""

    @property
    def spent(self) -> int:
        """How many tokens its provider has counted so far; 0 on this machine."""

    def encode(self, texts: Sequence[str], *, kind: Kind = "passage") -> Vectors:
        """Return one unit vector per text: float32, (number of texts, dimensions).

        Texts are cut at the window. Raises EmbeddingUnavailable with a sentence for the operator.
        """
