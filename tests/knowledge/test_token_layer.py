"""Token layer: what a run of tokens says counts wherever the run stands."""

from pathlib import Path

import numpy as np
import pytest

from assistant.lab.softmax_regression import save
from knowledge.embedding import encode, token_states
from knowledge.trained_layers import LinearLayer, TokenLayer, token_layer, word_features

COUNT = 1 << 10
FIRST, SECOND, OTHER = np.eye(3, dtype=np.float32)


def layer() -> TokenLayer:
    """A layer that finds a SECOND right after a FIRST: then a text is an order."""
    window = np.zeros((3, 3, 3), np.float32)
    window[0, 0, 0] = window[1, 1, 0] = 1  # before the token, and the token itself
    out = np.zeros((2 * 3 + 3, 2), np.float32)
    out[0, 1] = 20
    words = LinearLayer(
        ("plain", "order"),
        np.zeros((COUNT, 2), np.float32),
        np.ones(()),
        np.array([0, -10], np.float32),
    )
    return TokenLayer(
        words,
        narrow=np.eye(3, dtype=np.float32),
        narrow_bias=np.zeros(3, np.float32),
        window=window,
        window_bias=np.array([-1, 0, 0], np.float32),
        out=out,
    )


@pytest.mark.parametrize("before", [0, 1, 7])
@pytest.mark.parametrize("after", [0, 1, 7])
def test_a_run_is_found_wherever_it_stands(before: int, after: int) -> None:
    run = np.stack([*[OTHER] * before, FIRST, SECOND, *[OTHER] * after])
    reverse = np.stack([*[OTHER] * before, SECOND, FIRST, *[OTHER] * after])
    shares = layer().probabilities([run, reverse], ["", ""])
    assert shares[0, 1] > 0.99
    assert shares[1, 1] < 0.01
    assert shares.sum(axis=1) == pytest.approx(1)


def test_words_count_beside_the_tokens() -> None:
    trained = layer()
    trained.words.rows[word_features("system prompt", COUNT), 1] = 20
    shares = trained.probabilities([OTHER[None], OTHER[None]], ["a page", "the SYSTEM prompt"])
    assert shares[0, 1] < 0.01
    assert shares[1, 1] > 0.9


def test_a_layer_is_kept_and_found_again(tmp_path: Path) -> None:
    trained = layer()
    arrays = dict(zip(TokenLayer._fields[1:], trained[1:], strict=True))
    save(trained.words, tmp_path / "order.npz", **arrays)
    again = token_layer(tmp_path / "order.npz")
    states = [np.stack([FIRST, SECOND])]
    assert np.array_equal(again.probabilities(states, [""]), trained.probabilities(states, [""]))


def test_the_vector_of_a_text_points_to_the_mean_of_its_states() -> None:
    texts = ["Hello!", "How can I export the data of the last two years?", ""]
    states = token_states(texts)
    assert len({len(each) for each in states}) == 3
    means = np.stack([each.mean(axis=0) for each in states])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert means == pytest.approx(encode(texts), abs=1e-5)
