"""Texts that come again are not encoded again."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knowledge.embedding.local import VectorCache


class Encoder:
    """Gives a text's length as its vector and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(text)] for text in texts], np.float32)


def test_each_text_is_encoded_once_and_vectors_keep_their_order() -> None:
    recent, encoder = VectorCache(10), Encoder()
    assert [int(v[0]) for v in recent.encode(["aaa", "b", "aaa"], encoder)] == [3, 1, 3]
    assert [int(v[0]) for v in recent.encode(["b", "cc", "aaa"], encoder)] == [1, 2, 3]
    assert encoder.asked == ["aaa", "b", "cc"]


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    recent, encoder = VectorCache(2), Encoder()
    for text in ("a", "b", "a", "c", "a", "b"):
        recent.encode([text], encoder)
    assert encoder.asked == ["a", "b", "c", "b"]
    assert len(recent.vectors) == 2
