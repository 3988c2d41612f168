"""Normalising: markup goes, words stay."""

import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from knowledge.parsing.normalization import block_tokens, is_plain, normalise


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [the rules](refunds.md#x).", "See the rules."),
        ("See [the site](https://example.com/a(1)).", "See [the site](https://example.com/a(1))."),
        ("[text][ref]\n\n[ref]: page.md 'T'", "text"),
        ("![a chart](chart.png)", "a chart"),
        ("Press it: ![alt text](chart.png)\n\n![Image](a.png)\n\nWait.", "Press it:\n\nWait."),
        ("[![badge](b.svg)](page.md)", "badge"),
        ("a <!-- no\n\nnever --> b", "a  b"),
        ("`<!-- shown -->`", "`<!-- shown -->`"),
        ("Call <your-domain> or List<String>.", "Call <your-domain> or List<String>."),
        ("one<br/>two <b>bold</b> &amp; `<b>`", "one\ntwo bold & `<b>`"),
        ("## Title {#anchor}", "## Title"),
        (":::warning\nHot.\n:::", "Warning:\nHot."),
        (":::tip Did you know?\nYes.\n:::", "Did you know?\n\nYes."),
        ("Before\n<script>{`let a = 1`}</script>\nAfter", "Before\n\nAfter"),
        ("<head>\n<title>Bot</title>\n</head>\n\nText", "Text"),
        ("Say `<script>` aloud", "Say `<script>` aloud"),
        ("a\n\n\n\n\nb  ", "a\n\nb"),
        ("\ufeffa\r\nb\0\u2028c", "a\nb\nc"),
        ("| A | B |\n|---|---|\n| 1 | [x](y.md) |\n|  | 2 |", "- A: 1; B: x\n- B: 2"),
        ("Trains\n======\n\nBy night\n---\nDark.", "# Trains\n\n## By night\nDark."),
        ("Two lines\nof text\n---\nMore.", "Two lines\nof text\n---\nMore."),
        ("```\n<b> [a](b.md)\n| a |\n```", "```\n<b> [a](b.md)\n| a |\n```"),
    ],
)
def test_markup_is_reduced_to_its_words(text: str, expected: Any) -> None:
    assert normalise(text) == expected


def test_components_go_and_badges_stay_in_mdx() -> None:
    text = (
        "import Card from './card'\n\n<Card title={f({a: 1})} wide>\nInside\n</Card>\n\n"
        "**name** <Required />\n\n    <Card />\n{/* no */}"
    )
    assert normalise(text) == "Inside\n\n**name** (required)"


def test_components_are_text_outside_mdx() -> None:
    assert normalise("the <Card /> element") == "the <Card /> element"


@pytest.mark.parametrize(
    "unit", ["<a ", "[", "`", "![a", '<a b="', "<!--", "| a ", "> ", "[a](", "[[a]", "&a", "* _b "]
)
def test_hostile_repetition_takes_no_more_than_linear_time(unit: str) -> None:
    # Measured: 3.1 to 4.2 times as much. What grows with the square would take 16 times.
    assert cost(unit * 8000) < 9 * cost(unit * 2000)


def cost(text: str) -> float:
    """Return the seconds of work that a text takes, whatever else runs: the least of three."""
    seconds = []
    for _ in range(3):
        begin = time.thread_time()
        normalise(text)
        seconds.append(time.thread_time() - begin)
    return min(seconds)


@given(st.text(alphabet=st.sampled_from("ab<>/!-[]()`#|\n \"'{}:*&;="), max_size=60))
def test_any_text_can_be_normalised(text: str) -> None:
    assert isinstance(normalise(text), str)
    assert isinstance(normalise(text, mdx=True), str)


PIECES = [
    "- ",
    "* ",
    "1. ",
    "> ",
    "# ",
    "a",
    "\n",
    " ",
    "   ",
    "`",
    "``",
    "~",
    "~~",
    "--",
    ":-",
    "=",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.booleans())
def test_text_taken_for_plain_holds_neither_code_nor_a_table(text: str, mdx: bool) -> None:
    assume(is_plain(text))
    kinds = {token.type for token in block_tokens(text, mdx=mdx)}
    assert kinds.isdisjoint({"fence", "code_block", "table_open"})
