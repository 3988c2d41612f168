"""Classifier: tells kinds of text apart by a trained linear layer over embeddings, and words."""

import re
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding import encode

WORD = re.compile(r"\w+|[^\w\s]")
MOST_WORDS = 300


class Layer(NamedTuple):
    """Multinomial logistic regression: one row of weights and one bias for each kind."""

    kinds: tuple[str, ...]
    weights: NDArray[np.float32]  # (kinds, dimensions of the local embedding model)
    biases: NDArray[np.float32]  # (kinds,)
    # (buckets, kinds): what each word and run of two or three adds; no rows when words do not count
    words: NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def probabilities(
        self, vectors: NDArray[np.float32], texts: Sequence[str] = ()
    ) -> NDArray[np.float32]:
        """Return for each vector (rows) the probabilities of the kinds, which sum to 1.

        `texts` are what the vectors were made of, for a layer in which words count.
        """
        scores = vectors @ self.weights.T + self.biases
        if len(self.words):
            for row, text in enumerate(texts):
                found = buckets(text, len(self.words))
                scores[row] += self.words[found].sum(axis=0) / np.sqrt(max(1, len(found)))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), np.float32)


def buckets(text: str, count: int) -> list[int]:
    """Return the rows, below `count`, of the words of a text and of runs of two and three."""
    words = WORD.findall(text.lower())[:MOST_WORDS]
    runs: Iterable[str] = [*words, *map(" ".join, pairwise(words))]
    runs = [*runs, *map(" ".join, zip(words, words[1:], words[2:], strict=False))]
    return sorted({zlib.crc32(run.encode()) % count for run in runs})


@cache
def layer(path: Path) -> Layer:
    """Return the trained layer of an `.npz` file: kinds, weights (half precision) and biases."""
    with np.load(path) as file:
        trained = Layer(
            tuple(str(kind) for kind in file["kinds"]),
            file["weights"].astype(np.float32),
            file["biases"].astype(np.float32),
        )
        return trained._replace(words=file["words"].astype(np.float32))


def save(trained: Layer, path: Path) -> None:
    """Write the layer to an `.npz` file, the weights in half precision."""
    np.savez_compressed(
        path,
        kinds=np.array(trained.kinds),
        weights=trained.weights.astype(np.float16),
        biases=trained.biases.astype(np.float32),
        words=trained.words.astype(np.float16),
    )
    layer.cache_clear()


def probabilities(path: Path, texts: Sequence[str]) -> list[dict[str, float]]:
    """For each text, how likely each kind is by the layer in `path`.

    Texts are cut at the window of the embedding model. Raises EmbeddingUnavailable.
    """
    trained = layer(path)
    rows = trained.probabilities(encode(texts), texts)
    return [dict(zip(trained.kinds, map(float, row), strict=True)) for row in rows]
