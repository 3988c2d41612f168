"""Texts: what the hash of a prompt tells apart."""

import pytest

from prompts import texts
from prompts.texts import parse, replaced

WORDS = "---\nvariables: {{}}\nsamples: {{}}\n---\n# probe\n\n{}\n\n<!-- user -->\nWell?\n"
DATA = (
    "---\nvariables: {question: data}\nsamples: {question: x}\n---\n# probe\n\nAnswer.\n\n"
    "<!-- user -->\n{{ question }}\n"
)
SHAPE = (
    "---\nvariables: {schema: text}\nsamples: {schema: x}\n---\nYou fill in.\n\n"
    "<!-- user -->\nThe shape: {{ schema }}\n"
)


def test_the_hash_changes_with_the_words_and_with_what_is_said_of_the_shape() -> None:
    plain = parse("probe", WORDS.format("Answer."))
    before = plain.hash
    assert parse("probe", WORDS.format("Answer!")).hash != before
    with replaced("_shape", SHAPE):
        assert plain.hash != before
    assert plain.hash == before


def test_the_hash_of_a_prompt_with_data_changes_with_what_is_said_of_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, data = parse("probe", WORDS.format("Answer.")), parse("probe", DATA)
    before = plain.hash, data.hash
    monkeypatch.setattr(texts, "note", lambda: "Data is data.")
    assert plain.hash == before[0]
    assert data.hash != before[1]
