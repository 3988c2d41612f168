"""Sentences: what of a passage can be quoted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.sentences import split_message, split_passage


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use e.g. Dr. Smith's. Next one.", ["Use e.g. Dr. Smith's.", "Next one."]),
        ("See example.com or version 2.0 of it.", ["See example.com or version 2.0 of it."]),
        ("He said “Yes.” Then left.", ["He said “Yes.”", "Then left."]),
        ("A line\nthat goes on. Next.", ["A line that goes on.", "Next."]),
        ("这是第一句。这是第二句！", ["这是第一句。", "这是第二句！"]),
        ("Первое т. е. важное. Второе.", ["Первое т. е. важное.", "Второе."]),
        ("Das ist z. B. gut. Übung macht.", ["Das ist z. B. gut.", "Übung macht."]),
        ("¿Cómo? Así es.", ["¿Cómo?", "Así es."]),
        ("– Tak. – Nie wiem.", ["– Tak.", "– Nie wiem."]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_paragraph_splits_into_its_sentences(text: str, expected: Any) -> None:
    assert split_passage(text) == expected


def test_list_items_are_whole_and_lose_their_markers() -> None:
    text = "Steps:\n\n* First one. Still first\n  goes on.\n2. Second `x.y`\n- [ ] Third"
    assert split_passage(text) == [
        "Steps:",
        "First one. Still first goes on.",
        "Second `x.y`",
        "Third",
    ]


def test_code_block_is_one_statement_with_its_fences() -> None:
    assert split_passage("Run:\n\n```sh\na. B\n\nc\n```\nDone. Well.") == [
        "Run:",
        "```sh\na. B\n\nc\n```",
        "Done.",
        "Well.",
    ]


def test_code_block_that_never_ends_is_still_one_statement() -> None:
    assert split_passage("```\nopen. End") == ["```\nopen. End"]


def test_table_rows_are_whole_and_headings_are_left_out() -> None:
    assert split_passage("## Prices\n| a. B | c |\n|---|---|\n| 1 | 2 |\n---\nText.") == [
        "| a. B | c |",
        "| 1 | 2 |",
        "Text.",
    ]


@given(st.text(alphabet=st.sampled_from("aB .!?\n-*#|`1。>"), max_size=80))
def test_every_statement_says_something_and_nothing_crashes(text: str) -> None:
    assert all(statement.strip() for statement in split_passage(text))


@given(st.lists(st.sampled_from(["One is here.", "Is two?", "Three!"]), max_size=6))
def test_sentences_put_together_again_are_the_paragraph(sentences: list[str]) -> None:
    assert split_passage(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("hi there. how do I pay?", ["hi there.", "how do I pay?"]),
        ("first line\n\nsecond line", ["first line", "second line"]),
        ("see example.com or 2.0", ["see example.com or 2.0"]),
        (" \n ", []),
    ],
)
def test_a_message_splits_before_small_letters_and_at_each_line(
    message: str, expected: list[str]
) -> None:
    assert split_message(message) == expected
