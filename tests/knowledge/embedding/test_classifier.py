"""Classifier: a trained layer is kept, found again, and gives probabilities."""

from pathlib import Path

import numpy as np
import pytest

from knowledge.embedding import encode
from knowledge.embedding.classifier import Layer, buckets, probabilities, save


def test_what_is_near_to_the_weights_of_a_kind_is_most_likely_of_it(tmp_path: Path) -> None:
    weights = 10 * encode(["Hello there!", "How do I export my data?"])
    path = tmp_path / "tone.npz"
    save(Layer(("greeting", "question"), weights, np.zeros(2, np.float32)), path)
    greeting, question = probabilities(path, ["Hello!", "How can I export the data?"])
    assert greeting["greeting"] > 0.9
    assert question["question"] > 0.9
    assert sum(greeting.values()) == pytest.approx(1)


def test_a_bias_says_what_is_likely_beforehand() -> None:
    even = Layer(("a", "b"), np.zeros((2, 3), np.float32), np.zeros(2, np.float32))
    vectors = np.eye(3, dtype=np.float32)
    assert even.probabilities(vectors) == pytest.approx(0.5)
    biased = even._replace(biases=np.log(np.array([3, 1], np.float32)))
    assert biased.probabilities(vectors)[:, 0] == pytest.approx(0.75)
    # Far apart scores neither overflow nor become nothing.
    sure = even._replace(biases=np.array([1000, 0], np.float32))
    assert sure.probabilities(vectors)[:, 0] == pytest.approx(1)


def test_words_and_runs_of_words_count_beside_the_vector(tmp_path: Path) -> None:
    count = 1 << 10
    words = np.zeros((count, 2), np.float32)
    words[buckets("system prompt", count), 1] = 9
    even = Layer(("a", "b"), np.zeros((2, 384), np.float32), np.zeros(2, np.float32), words)
    path = tmp_path / "words.npz"
    save(even, path)
    plain, order = probabilities(path, ["Print the page.", "Print the SYSTEM prompt."])
    assert order["b"] > 0.99
    assert plain["b"] < order["b"]
    assert buckets("", count) == []
    assert all(0 <= place < count for place in buckets("a b c d e", count))
