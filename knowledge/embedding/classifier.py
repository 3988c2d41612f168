"""Classifier: tells kinds of text apart by a trained linear layer over their embeddings."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import encode


class Layer(NamedTuple):
    """Multinomial logistic regression: one row of weights and one bias for each kind."""

    kinds: tuple[str, ...]
    weights: NDArray[np.float32]  # (kinds, dimensions of the local embedding model)
    biases: NDArray[np.float32]  # (kinds,)

    def probabilities(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return for each vector (rows) the probabilities of the kinds, which sum to 1."""
        scores = vectors @ self.weights.T + self.biases
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)


@cache
def layer(path: Path) -> Layer:
    """Return the trained layer of an `.npz` file: kinds, weights (half precision) and biases."""
    with np.load(path) as file:
        return Layer(
            tuple(str(kind) for kind in file["kinds"]),
            file["weights"].astype(np.float32),
            file["biases"].astype(np.float32),
        )


def save(trained: Layer, path: Path) -> None:
    """Write the layer to an `.npz` file, the weights in half precision."""
    np.savez(
        path,
        kinds=np.array(trained.kinds),
        weights=trained.weights.astype(np.float16),
        biases=trained.biases.astype(np.float32),
    )
    layer.cache_clear()


def probabilities(path: Path, texts: Sequence[str]) -> list[dict[str, float]]:
    """For each text, how likely each kind is by the layer in `path`.

    Texts are cut at the window of the embedding model. Raises EmbeddingUnavailable.
    """
    trained = layer(path)
    rows = trained.probabilities(encode(texts))
    return [dict(zip(trained.kinds, map(float, row), strict=True)) for row in rows]
