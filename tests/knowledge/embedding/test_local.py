"""Embedding: the same vectors as the reference implementation, whatever the text."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from knowledge import embedding, tokens
from knowledge.embedding import registry, runtime
from knowledge.embedding.bert import EightBit
from knowledge.embedding.local import LOCAL
from knowledge.embedding.minilm import LAYERS, RANGES, read_weights

REFERENCE = json.loads(
    (Path(__file__).parent / "reference_vectors.json").read_text(encoding="utf-8")
)["vectors"]


@pytest.mark.parametrize("reference", REFERENCE, ids=lambda each: repr(each["text"][:30]))
def test_vector_equals_that_of_sentence_transformers(reference: dict[str, Any]) -> None:
    (vector,) = embedding.encode([reference["text"]])
    expected = np.array(reference["vector"])
    assert float(vector @ expected) / float(np.linalg.norm(expected)) >= 0.9999
    assert np.abs(vector - expected).max() < 1e-3


def test_neighbours_in_a_batch_do_not_change_a_vector() -> None:
    texts = [each["text"] for each in REFERENCE]
    together = embedding.encode(texts)
    alone = np.concatenate([embedding.encode([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-4
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


def test_passages_in_eight_bits_lie_where_the_exact_ones_do() -> None:
    texts = [each["text"] for each in REFERENCE if each["text"]]
    cosines = (LOCAL.encode(texts, kind="passage") * embedding.encode(texts)).sum(axis=1)
    assert cosines.min() > 0.99
    assert cosines.mean() > 0.995
    assert cosines.mean() < 0.99999


def test_neighbours_in_a_batch_do_not_change_a_passage() -> None:
    texts = [each["text"] for each in REFERENCE]
    together = LOCAL.encode(texts, kind="passage")
    registry.forget()
    alone = np.concatenate([LOCAL.encode([text], kind="passage") for text in texts])
    assert np.abs(together - alone).max() < 1e-4


def test_no_sum_of_products_overflows_sixteen_bits_on_any_machine() -> None:
    weights_of = read_weights(tokens.package_folder() / "model.safetensors")
    integers = [
        value
        for name, value in EightBit(weights_of, RANGES).weights.items()
        if name.endswith(".integers")
    ]
    assert len(integers) == 6 * LAYERS
    assert all(int(np.abs(each).max()) * 255 * 2 < 2**15 for each in integers)


def test_a_range_is_known_of_every_input_and_holds_zero() -> None:
    ranges = json.loads(RANGES.read_text(encoding="utf-8"))
    inputs = ("qkv", "mix", "wide", "narrow")
    assert set(ranges) == {f"{layer}.{name}" for layer in range(LAYERS) for name in inputs}
    assert all(each["low"] <= 0 < each["high"] for each in ranges.values())
    assert all(factor > 1 for each in ranges.values() for factor in each["smaller"].values())


def test_no_text_gives_no_vector() -> None:
    assert embedding.encode([]).shape == (0, embedding.DIMENSIONS)


def test_threads_may_encode_at_the_same_time() -> None:
    texts = [f"Sentence number {number}" for number in range(8)]
    expected = embedding.encode(texts)
    seen: dict[int, Any] = {}

    def work(name: int) -> None:
        seen[name] = embedding.encode(texts)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(np.abs(vectors - expected).max() < 1e-5 for vectors in seen.values())


def test_tokens_are_counted_beyond_the_window() -> None:
    assert tokens.count_tokens("") == 2
    assert tokens.count_tokens(" ".join(["visits"] * 300)) == 302


@pytest.mark.parametrize("is_padded", [True, False])
@pytest.mark.parametrize("lengths", [[], [5], [256] * 9, [3, 250, 4, 100, 256, 1, 3, 3]])
def test_batches_hold_every_text_once_and_stay_within_bounds(
    lengths: list[int], is_padded: bool
) -> None:
    batches = list(runtime.batches(lengths, is_padded=is_padded))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        found = {lengths[place] for place in batch}
        assert max(found) * len(batch) <= runtime.TOKENS_PER_RUN
        assert is_padded or len(found) == 1


def test_graphs_are_made_once_and_left_in_the_state_folder(
    settings: Settings, tmp_path: Path
) -> None:
    settings.STATE_DIR = tmp_path
    former = tmp_path / "models" / "all-MiniLM-L6-v2-0"
    former.mkdir(parents=True)
    made = runtime.Runtime.recipe.graphs()
    written = made.stat().st_mtime_ns
    assert runtime.Runtime.recipe.graphs().stat().st_mtime_ns == written
    folders = [each.name for each in (tmp_path / "models").iterdir() if each.is_dir()]
    assert folders == [made.name]
