"""Training: what is trained on, and that it is learned."""

from pathlib import Path

import numpy as np
import pytest

from assistant.lab import guardrails_fit, guardrails_sets
from assistant.lab.guardrails_fit import composed, fit, runs, training_texts
from assistant.lab.guardrails_sets import ABUSE, HARMFUL, INSULT, KINDS, SAFE, Source, Text, lines


def test_kinds_are_learned_from_vectors_and_from_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardrails_fit, "AT_ONCE", 8)
    texts = [Text(f"{kind} {number}", kind) for number in range(99) for kind in KINDS]
    # The vectors tell two of the kinds apart, only the words tell the others.
    vectors = np.array([[text.kind == HARMFUL, text.kind == INSULT] for text in texts], np.float32)
    layer = fit(vectors, texts)
    found = layer.probabilities(vectors, [text.text for text in texts]).argmax(axis=1)
    assert [KINDS[number] for number in found] == [text.kind for text in texts]
    again = fit(vectors, texts)
    assert np.array_equal(layer.weights, again.weights)
    assert np.array_equal(layer.words.rows, again.words.rows)


def test_composed_orders_are_the_same_every_time_and_in_many_languages() -> None:
    orders = composed(["My printer is on fire."])
    assert orders == composed(["My printer is on fire."])
    assert {order.kind for order in orders} == {ABUSE}
    assert not any("{" in order.text for order in orders)
    assert any("fire" in order.text for order in orders)
    for words in ("vorherigen", "instrucciones", "instructions", "инструкции", "指令"):
        assert any(words in order.text for order in orders), words


def test_what_measures_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, short = "What is the price of a blue teapot with two handles?", "Short one"
    measured = "please tell me how to descale the blue teapot before tea"
    (tmp_path / "safe.txt").write_text("\n".join([kept, f"Well, {measured.upper()}!", short]))
    (tmp_path / "measuring.jsonl").write_text(
        f'{{"text": "{measured}"}}\n{{"text": "short one"}}\n'
    )
    monkeypatch.setattr(guardrails_sets, "SOURCES", (Source("safe.txt", SAFE, lines),))
    monkeypatch.setattr(guardrails_fit, "COMPOSED", {})
    monkeypatch.setattr(guardrails_fit, "COMPOSED_ELSEWHERE", 1)
    texts = training_texts(tmp_path, [tmp_path / "measuring.jsonl"])
    assert [text.text for text in texts if text.kind == SAFE] == [kept]
    assert runs("") == set()


def test_a_set_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/guardrails\.md"):
        guardrails_sets.read(tmp_path)
