"""Embedding: the same vectors as the reference implementation, whatever the text."""

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from knowledge import embedding, local, models, weights

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
    assert embedding.count_tokens("") == 2
    assert embedding.count_tokens(" ".join(["visits"] * 300)) == 302


@pytest.mark.parametrize("lengths", [[], [5], [256] * 9, [3, 250, 4, 100, 256, 1]])
def test_batches_hold_every_text_once_and_stay_within_bounds(lengths: list[int]) -> None:
    batches = list(local.batches(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(
        max(lengths[place] for place in batch) * len(batch) <= local.TOKENS_PER_RUN
        for batch in batches
    )


def test_models_and_embedding_agree_on_the_local_model() -> None:
    assert (models.LOCAL_MODEL, models.LOCAL_DIMENSIONS) == (embedding.MODEL, embedding.DIMENSIONS)


def test_graph_is_made_once_and_left_in_the_state_folder(
    settings: Settings, tmp_path: Path
) -> None:
    settings.STATE_DIR = tmp_path
    made = weights.graph()
    written = made.stat().st_mtime_ns
    assert weights.graph().stat().st_mtime_ns == written
    assert [each.name for each in (tmp_path / "models").iterdir()] == [made.parent.name]
