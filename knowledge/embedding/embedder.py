"""Embedder: what every embedding model can do, and what can be wrong with one."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from knowledge.errors import EmbeddingUnavailable

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


class EndpointError(EmbeddingUnavailable):
    """The embedding endpoint could not be used."""

    passes = False


class UnknownModel(EndpointError):
    """The name of the embedding model cannot be one."""


class KeyRefused(EndpointError):
    """The provider refused the key, or there is none."""


class ModelMissing(EndpointError):
    """The provider has no such model."""


class Refused(EndpointError):
    """The provider would not answer this request."""


class Malformed(EndpointError):
    """The provider answered something else than vectors."""


class WrongDimensions(EndpointError):
    """The vectors are longer or shorter than they may be."""


class Overloaded(EndpointError):
    """The provider limits how much it is asked."""

    passes = True


class Unreachable(EndpointError):
    """The provider cannot be reached, or fails."""

    passes = True


class TooSlow(EndpointError):
    """The provider did not answer in time."""

    passes = True
