"""Trained layers: they are kept, found again, and give probabilities."""

from pathlib import Path

import numpy as np
import pytest

from assistant.lab.softmax_regression import save
from knowledge.embedding import encode
from knowledge.trained_layers import Classifier, LinearLayer, classifier, word_features

COUNT = 1 << 10


def words(*kinds: str) -> LinearLayer:
    """Words that say nothing of any kind."""
    silent = np.zeros((COUNT, len(kinds)), np.float32)
    return LinearLayer(kinds, silent, np.ones(()), np.zeros(len(kinds), np.float32))


def test_what_is_near_to_the_weights_of_a_kind_is_most_likely_of_it(tmp_path: Path) -> None:
    weights = 10 * encode(["Hello there!", "How do I export my data?"])
    path = tmp_path / "tone.npz"
    save(words("greeting", "question"), path, weights=weights)
    texts = ["Hello!", "How can I export the data?"]
    shares = classifier(path).probabilities(encode(texts), texts)
    assert shares[0, 0] > 0.9
    assert shares[1, 1] > 0.9
    assert shares.sum(axis=1) == pytest.approx(1)


def test_a_bias_says_what_is_likely_beforehand() -> None:
    vectors, texts = np.eye(3, dtype=np.float32), ["a", "b", ""]
    even = Classifier(words("a", "b"), np.zeros((2, 3), np.float32))
    assert even.probabilities(vectors, texts) == pytest.approx(0.5)
    biases = np.log(np.array([3, 1], np.float32))
    biased = even._replace(words=even.words._replace(biases=biases))
    assert biased.probabilities(vectors, texts)[:, 0] == pytest.approx(0.75)
    # Far apart scores neither overflow nor become nothing.
    far = np.array([1000, 0], np.float32)
    sure = even._replace(words=even.words._replace(biases=far))
    assert sure.probabilities(vectors, texts)[:, 0] == pytest.approx(1)


def test_words_and_runs_of_words_count_beside_the_vector(tmp_path: Path) -> None:
    even = words("a", "b")
    even.rows[word_features("system prompt", COUNT), 1] = 9
    path = tmp_path / "words.npz"
    save(even, path, weights=np.zeros((2, 384), np.float32))
    texts = ["Print the page.", "Print the SYSTEM prompt."]
    plain, order = classifier(path).probabilities(encode(texts), texts)
    assert order[1] > 0.99
    assert plain[1] < order[1]
    assert word_features("", COUNT) == []
    assert all(0 <= place < COUNT for place in word_features("a b c d e", COUNT))
