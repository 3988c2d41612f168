"""Polyglot: a multilingual model that knows a few words, and what it was asked."""

from collections.abc import Sequence

import numpy as np

from knowledge.embedding import DIMENSIONS, Kind, Vectors

# Words of one meaning lie in one direction.
MEANINGS = (("ferry", "fähre"), ("foghorn", "nebelhorn"), ("keeper", "wärter"), ("guest", "gäste"))


class Polyglot:
    """In place of `MULTILINGUAL.encode`."""

    def __init__(self) -> None:
        self.asked: list[tuple[Kind, str]] = []

    def __call__(self, texts: Sequence[str], *, kind: Kind = "passage") -> Vectors:
        """Return a unit vector per text: the mean of the meanings of its words."""
        self.asked += [(kind, text) for text in texts]
        vectors = np.full((len(texts), DIMENSIONS), 0.01, np.float32)
        for row, text in enumerate(texts):
            for place, names in enumerate(MEANINGS):
                vectors[row, place] += sum(text.lower().count(name) for name in names)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
