"""The multilingual model: its file, its pieces and its graph, on a file that is made up."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from knowledge.embedding import e5, e5_file, registry
from knowledge.embedding.e5_file import E5File, packed
from knowledge.embedding.local import MULTILINGUAL
from knowledge.embedding.runtime import CENTRE, MultilingualRuntime
from knowledge.embedding.unigram import UNLIKELY, Unigram
from knowledge.errors import EmbeddingUnavailable
from tests.knowledge.tiny_e5 import PIECES, REPLACED, SCORES, TinyE5

TEXTS = [[0, 8, 5, 6, 2], [0, 10, 7, 4, 9, 3, 2]]


@pytest.fixture
def tiny(tmp_path: Path) -> TinyE5:
    made = TinyE5()
    made.write(tmp_path / "weights.bin")
    return made


@pytest.fixture
def unigram() -> Unigram:
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    return Unigram(numbers, SCORES, REPLACED, unknown=3)


def test_the_vocabulary_is_read_as_it_was_packed(tiny: TinyE5, tmp_path: Path) -> None:
    file = E5File(tmp_path / "weights.bin")
    assert list(file.pieces()) == PIECES
    assert file.scores().tolist() == SCORES
    assert file.replacements() == REPLACED
    assert (file.begin, file.end, file.unknown) == (0, 2, 3)


def test_another_file_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "weights.bin"
    other.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(EmbeddingUnavailable, match="no file of weights"):
        E5File(other)


def test_what_to_do_without_the_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5_file, "PACKAGE", "weights_nobody_installed")
    with pytest.raises(EmbeddingUnavailable, match="CROSS_LINGUAL=on installs it"):
        packed()


def test_the_exact_graph_computes_what_bert_is_defined_as(tiny: TinyE5, tmp_path: Path) -> None:
    e5.make(tmp_path / "weights.bin", tmp_path, ranges=None)
    session = onnxruntime.InferenceSession(str(tmp_path / e5.GRAPH))
    for ids in TEXTS:
        (states,) = session.run(None, {"ids": np.array([ids], np.int32)})
        assert np.abs(states[0] - tiny.states(ids)).max() < 2e-3


def test_the_graph_in_eight_bits_lies_where_the_exact_one_does(
    tiny: TinyE5, tmp_path: Path
) -> None:
    entry = {"low": -4.0, "high": 4.0, "smaller": {"3": 2.0}}
    ranges = tmp_path / "ranges.json"
    ranges.write_text(json.dumps({f"0.{name}": entry for name in ("qkv", "mix", "wide", "narrow")}))
    e5.make(tmp_path / "weights.bin", tmp_path, ranges)
    session = onnxruntime.InferenceSession(str(tmp_path / e5.GRAPH))
    for ids in TEXTS:
        (states,) = session.run(None, {"ids": np.array([ids], np.int32)})
        mean, expected = states[0].mean(axis=0), tiny.states(ids).mean(axis=0)
        cosine = mean @ expected / np.linalg.norm(mean) / np.linalg.norm(expected)
        assert cosine > 0.995


def splits(word: str) -> list[list[str]]:
    """Every way to cut a word."""
    cuts = [each for size in range(len(word)) for each in combinations(range(1, len(word)), size)]
    return [[word[a:b] for a, b in zip((0, *cut), (*cut, len(word)), strict=True)] for cut in cuts]


def score(parts: list[str]) -> float:
    lowest = min(SCORES) - UNLIKELY
    known = dict(zip(PIECES, SCORES, strict=True))
    return sum(known.get(part, lowest if len(part) == 1 else -np.inf) for part in parts)


@pytest.mark.parametrize("word", ["\u2581abab", "\u2581baab", "\u2581", "\u2581axb", "bab", "xyz"])
def test_no_other_cut_of_a_word_is_likelier(unigram: Unigram, word: str) -> None:
    found = [PIECES[piece] for piece in unigram.likeliest(word)]
    best = max(splits(word), key=score)
    assert found == [part if part in PIECES else "<unk>" for part in best]


def test_a_text_is_cut_into_words_as_sentencepiece_does(unigram: Unigram) -> None:
    assert unigram.encode("ab  a\nab") == [8, 9, 8]
    assert unigram.encode("\x07ab") == unigram.encode(" ab") == [8]
    assert unigram.encode("") == [4]


def test_words_that_came_before_are_not_cut_again_and_not_kept_for_ever(
    unigram: Unigram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knowledge.embedding.unigram.REMEMBERED", 3)
    for word in ("a", "b", "ab", "ba", "aa"):
        assert unigram.encode(word) == unigram.encode(word)
        assert len(unigram.words) <= 3


def test_vectors_are_seen_from_the_centre(
    tiny: TinyE5, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    e5.make(tmp_path / "weights.bin", tmp_path, ranges=None)
    monkeypatch.setattr(e5_file, "packed", lambda: tmp_path / "weights.bin")
    runtime = MultilingualRuntime()
    runtime.sessions["model.onnx"] = onnxruntime.InferenceSession(str(tmp_path / e5.GRAPH))
    monkeypatch.setattr("knowledge.embedding.runtime.PREFIXES", {"question": "a ", "passage": "b"})
    expected = tiny.states([0, *runtime.tokens.encode("a ab"), 2]).mean(axis=0)
    expected = expected / np.linalg.norm(expected) - runtime.centre
    (vector,) = runtime.encode(["ab"], kind="question")
    assert np.abs(vector - expected / np.linalg.norm(expected)).max() < 2e-3
    assert np.abs(vector - runtime.encode(["ab"], kind="passage")[0]).max() > 1e-3


def test_a_range_is_known_of_every_input_and_holds_zero() -> None:
    ranges = json.loads(e5.RANGES.read_text(encoding="utf-8"))
    inputs = ("qkv", "mix", "wide", "narrow")
    assert set(ranges) == {f"{layer}.{name}" for layer in range(12) for name in inputs}
    assert all(each["low"] <= 0 < each["high"] for each in ranges.values())
    assert len(json.loads(CENTRE.read_text(encoding="utf-8"))) == MULTILINGUAL.dimensions


def test_the_registry_knows_it_by_its_name() -> None:
    assert registry.named("multilingual-e5-small") is MULTILINGUAL
    assert registry.full_name("multilingual-e5-small") == "multilingual-e5-small"
