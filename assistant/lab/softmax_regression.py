"""Softmax regression: fits linear layers over hashed features, by AdaGrad (Duchi et al. 2011)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knowledge import trained_layers
from knowledge.trained_layers import Floats, LinearLayer, softmax


class Batch:
    """Texts as the buckets of their features, and the numbers of their kinds."""

    def __init__(self, found: Sequence[Sequence[int]], kinds: NDArray[np.int64]) -> None:
        sizes = np.array([len(each) for each in found])
        self.kinds = kinds
        self.ids = np.concatenate([np.array(each, np.int64) for each in found])
        self.owners = np.repeat(np.arange(len(found)), sizes)
        self.roots = np.sqrt(np.maximum(1, sizes))[:, None]

    def errors(self, scores: Floats) -> Floats:
        """Return how much too likely each kind is of each text, by these scores."""
        shares = softmax(scores)
        shares[np.arange(len(shares)), self.kinds] -= 1
        return shares


class Regression:
    """Weights and biases on their way, with the squares of the slopes they went down.

    Where there are many `kinds`, those of a row `share` one square.
    """

    def __init__(self, count: int, kinds: int, *, share: bool = False) -> None:
        self.rows = np.zeros((count, kinds), np.float32)
        self.biases = np.zeros(kinds, np.float32)
        self.squares = np.full((count, 1 if share else kinds), 1e-6, np.float32)

    def scores(self, batch: Batch) -> Floats:
        """Return the scores of the kinds (columns) for texts (rows)."""
        scores = np.zeros((len(batch.roots), len(self.biases)), np.float32)
        owners, sums = sums_of(self.rows[batch.ids], batch.owners)
        scores[owners] = sums
        return np.asarray(scores / batch.roots + self.biases)

    def learn(
        self, batch: Batch, errors: Floats, rate: float, *, bias_rate: float = 0, decay: float = 0
    ) -> None:
        """Go down the slope of these errors; `decay` pulls weights to nothing."""
        slope = (errors / batch.roots).astype(np.float32)[batch.owners]
        used, slopes = sums_of(slope, batch.ids)
        slopes += decay * self.rows[used]
        squares = slopes**2
        is_shared = self.squares.shape != self.rows.shape
        self.squares[used] += squares.mean(axis=1, keepdims=True) if is_shared else squares
        self.rows[used] -= rate * slopes / np.sqrt(self.squares[used])
        self.biases -= bias_rate * errors.sum(axis=0)


def sums_of(values: Floats, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
    """Return the groups that there are, and the sum of the values (rows) of each."""
    order = np.argsort(groups, kind="stable")
    present, firsts = np.unique(groups[order], return_index=True)
    return present, np.add.reduceat(values[order], firsts)


def in_bytes(kinds: Sequence[str], model: Regression, axis: int | None = None) -> LinearLayer:
    """Return a layer with a byte for a weight, and a scale for all, or with 0 for each kind."""
    scales = np.asarray(np.abs(model.rows).max(axis=axis) / np.iinfo(np.int8).max)
    rows = np.round(model.rows / scales).astype(np.int8)
    return LinearLayer(tuple(kinds), rows, scales.astype(np.float64), model.biases)


def save(trained: LinearLayer, path: Path, **others: Floats) -> None:
    """Write a layer, and what else belongs to it, to an `.npz` file."""
    arrays = dict(trained._asdict(), kinds=np.array(trained.kinds), **others)
    np.savez_compressed(path, **arrays)
    trained_layers.layer.cache_clear()
