"""Trained layers: tell kinds of text apart by words, by what they mean, or token by token.

Words are hashed (Weinberger et al. 2009). The vector of a text is the mean over its tokens, in
which an order inside a longer text is lost; a token layer looks at runs of tokens before anything
is averaged.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

WORD = re.compile(r"\w+|[^\w\s]")
MOST_WORDS = 300


class LinearLayer(NamedTuple):
    """Multinomial logistic regression: a row for each bucket, a column for each kind."""

    kinds: tuple[str, ...]
    rows: NDArray[np.int8] | Floats  # (buckets, kinds), in units of `scales`
    scales: Floats  # (kinds,) or of all
    biases: NDArray[np.float32]  # (kinds,)

    def evidence(self, found: Sequence[int]) -> Floats:
        """Return what features in these buckets add to the score of each kind."""
        # Trained so: features of one text depend on each other, and more of them say less each.
        total = self.rows[found].sum(axis=0, dtype=np.float32)
        return np.asarray(total * self.scales / np.sqrt(max(1, len(found))))

    def probabilities(self, found: Sequence[int]) -> dict[str, float]:
        """Return how likely each kind is, summing to 1, for a text with features in these."""
        shares = softmax(self.evidence(found) + self.biases)
        return dict(zip(self.kinds, shares.tolist(), strict=True))


class Classifier(NamedTuple):
    """Multinomial logistic regression on what texts mean, and on their words."""

    words: LinearLayer  # with the kinds, and the biases of both
    weights: Floats  # (kinds, dimensions of the local embedding model)

    def probabilities(self, vectors: Floats, texts: Sequence[str]) -> Floats:
        """Return for each text (rows), and its vector, how likely each kind is (columns)."""
        scores = vectors @ self.weights.T.astype(np.float32) + self.words.biases
        for row, text in enumerate(texts):
            scores[row] += self.words.evidence(word_features(text, len(self.words.rows)))
        return softmax(scores)


class TokenLayer(NamedTuple):
    """A convolution over tokens whose largest and mean outputs are weighed, beside words.

    Of `d` dimensions of the local model `n` outputs are made for each token, and `n` for each run
    of `w` tokens.
    """

    words: LinearLayer  # with the kinds, and the biases of all
    narrow: Floats  # (d, n)
    narrow_bias: Floats  # (n,)
    window: Floats  # (w, n, n)
    window_bias: Floats  # (n,)
    out: Floats  # (2n + d, kinds): of the largest outputs, of their mean, of the mean token

    def probabilities(self, states: Sequence[Floats], texts: Sequence[str]) -> Floats:
        """Return for each text (rows) how likely each kind is (columns).

        `states` are (tokens, d) for each, as `knowledge.embedding.token_states` returns them.
        """
        return softmax(np.stack([self._score(*each) for each in zip(states, texts, strict=True)]))

    def _score(self, states: Floats, text: str) -> Floats:
        width = len(self.window)
        each = np.maximum(states @ self.narrow + self.narrow_bias, 0)
        padded = np.pad(each, ((width // 2, width // 2), (0, 0)))
        runs = sum(padded[place : place + len(each)] @ self.window[place] for place in range(width))
        found = np.maximum(runs + self.window_bias, 0)
        features = np.concatenate([found.max(axis=0), found.mean(axis=0), states.mean(axis=0)])
        evidence = self.words.evidence(word_features(text, len(self.words.rows)))
        return np.asarray(features @ self.out + evidence + self.words.biases)


def buckets(names: Iterable[str], count: int) -> list[int]:
    """Return the bucket, below `count`, of each feature."""
    return [crc32(name.encode()) % count for name in names]


def word_features(text: str, count: int) -> list[int]:
    """Return the buckets, below `count`, of the words of a text and of runs of two and three."""
    words = WORD.findall(text.lower())[:MOST_WORDS]
    runs: Iterable[str] = [*words, *map(" ".join, pairwise(words))]
    runs = [*runs, *map(" ".join, zip(words, words[1:], words[2:], strict=False))]
    return sorted(set(buckets(runs, count)))


def softmax(scores: Floats) -> Floats:
    """Return shares that sum to 1 in each row."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@cache
def layer(path: Path) -> LinearLayer:
    """Return the trained layer of an `.npz` file."""
    with np.load(path) as file:
        kinds = tuple(file["kinds"].tolist())
        return LinearLayer(kinds, file["rows"], file["scales"], file["biases"])


@cache
def classifier(path: Path) -> Classifier:
    """Return the trained classifier of an `.npz` file."""
    with np.load(path) as file:
        return Classifier(layer(path), file["weights"])


@cache
def token_layer(path: Path) -> TokenLayer:
    """Return the trained layer of an `.npz` file."""
    with np.load(path) as file:
        names = TokenLayer._fields[1:]
        return TokenLayer(layer(path), *(file[name].astype(np.float32) for name in names))
