"""Streaming: what of an answer is shown while it is still being written."""

from dataclasses import dataclass, field

import pytest

from agents.documentation.citations.links import Addresses
from agents.documentation.streaming import Stream
from agents.llm.token_stream import TokenStream


@dataclass
class ShownTokens(TokenStream):
    """Tokens that keep what is shown, and what each reader has seen at any time."""

    text: str = ""
    seen: list[str] = field(default_factory=list)
    replaced: int = 0

    def add(self, text: str) -> None:
        """Keep a piece."""
        self.has_text = self.has_text or bool(text)
        self.text += text
        self.seen.append(self.text)

    def replace(self, text: str = "") -> None:
        """Begin again."""
        self.text, self.has_text = text, True
        self.replaced += 1
        self.seen.append(text)

    def withdraw(self) -> None:
        """Begin again, if anything was said."""
        if self.has_text:
            self.replace()


def streamed(text: str, size: int = 1) -> tuple[Stream, ShownTokens]:
    tokens = ShownTokens()
    stream = Stream(tokens, {"C1", "C2"}, Addresses(["https://docs.example/a"]))
    for place in range(0, len(text), size):
        stream.take(text[place : place + size])
    return stream, tokens


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_an_answer_is_told_as_it_will_read(size: int) -> None:
    text = (
        "To do *it* (once) [C1]:\n\n1. Fill `a[0]` [C1, C2]\n2. See https://docs.example/a now "
        "[C1].\n\n```\nx = [1]  # https://evil.example\n```\n\nIt costs < 5 > 3! Done."
    )
    expected = text.replace("[C1, C2]", "[C1][C2]")
    stream, tokens = streamed(text, size)
    assert expected.startswith(tokens.text)
    assert len(tokens.text) > len(expected) - 20
    stream.finish(expected)
    assert tokens.text == expected
    assert tokens.replaced == 0


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_no_half_marker_and_no_unknown_one_is_ever_shown(size: int) -> None:
    _, tokens = streamed("First [C1]. Second [C9]. Third (C2). End of it. ", size)
    assert tokens.text == "First [C1]. Second. Third [C2]. End of it."
    for seen in tokens.seen:
        assert "C9" not in seen
        assert seen.count("[") == seen.count("]")


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "INSUFFICIENT: how long the battery lasts\nSorry about that.",
        "  **INSUFFICIENT:** how long",
        "DETAIL NEEDED: which plan",
        "Insufficient: which plan",
    ],
)
def test_nothing_of_a_line_that_declines_is_shown(text: str, size: int) -> None:
    _, tokens = streamed(text, size)
    assert tokens.seen == []


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("heading", ["Sources:", "**Quellen:**", "## Sources", "Fuentes: "])
def test_a_list_of_sources_is_not_shown(heading: str, size: int) -> None:
    _, tokens = streamed(f"It is so [C1].\n\n{heading}\n- Care\n- More\n", size)
    assert tokens.text == "It is so [C1]."


def test_a_line_that_only_begins_like_a_heading_is_shown() -> None:
    _, tokens = streamed("Sour milk is bad [C1].\nInsufficient light harms [C1]. It does.\nx y z")
    assert "Sour milk is bad [C1].\nInsufficient light harms [C1]. It does." in tokens.text


@pytest.mark.parametrize("size", [1, 6, 1000])
def test_no_foreign_address_is_ever_shown(size: int) -> None:
    text = (
        "See ![x](https://evil.example/?d=1) and [y](https://evil.example) "
        "https://evil.example/z ok then."
    )
    stream, tokens = streamed(text, size)
    stream.finish("See x and y  ok then.")
    assert all("evil" not in seen for seen in tokens.seen)


def test_a_final_text_that_differs_replaces_what_was_shown() -> None:
    stream, tokens = streamed("One thing holds [C1]. Another one does not [C1]. ")
    stream.finish("One thing holds [C1].\n\nSources:\n- Care")
    assert tokens.replaced == 1
    assert tokens.text == "One thing holds [C1].\n\nSources:\n- Care"


def test_a_restart_voids_what_was_shown() -> None:
    stream, tokens = streamed("One thing holds [C1]. And an")
    stream.restart()
    assert tokens.text == ""
    stream.take("INSUF")
    stream.take("FERABLE noise ends [C1]. So it is.")
    stream.finish("INSUFFERABLE noise ends [C1]. So it is.")
    assert tokens.text == "INSUFFERABLE noise ends [C1]. So it is."
