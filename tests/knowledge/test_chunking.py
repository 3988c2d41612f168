"""Chunking: along the structure, within the window, nothing lost."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.chunking import Part, chunk, embedding_text, heading_path, merge_low, split_blocks
from knowledge.parsing.dispatch import parse
from knowledge.tokens import WINDOW, count_tokens

SENTENCE = "The keeper of the lighthouse lights the lamp before the ships come in. "


def seen(title: str, part: Part) -> int:
    return count_tokens(embedding_text(title, part.section, part.text))


def test_each_section_is_a_chunk_that_knows_its_last_three_headings() -> None:
    content = (
        "# Guide\n\nIntro lamp.\n\n## A\n\nlamp a\n\n### B\n\nlamp b\n\n#### C\n\n##### D\n\nlamp d"
    )
    parts = chunk("Guide", content, ["lamp"])
    assert [(part.section, part.text) for part in parts] == [
        ((), "Intro lamp."),
        (("A",), "lamp a"),
        (("A", "B"), "lamp b"),
        (("B", "C", "D"), "lamp d"),
    ]


def test_long_section_is_cut_between_sentences_and_repeats_where_it_was_cut() -> None:
    parts = chunk("Guide", "## A\n\n" + SENTENCE * 60, ["lamp"])
    assert len(parts) > 3
    assert all(seen("Guide", part) <= WINDOW for part in parts)
    assert all(part.text.startswith("The keeper") for part in parts)
    assert all(part.text.endswith("come in.") for part in parts)


def test_code_block_that_fits_is_never_cut() -> None:
    code = "```py\n" + "\n".join(f"lamp_{number} = {number}" for number in range(12)) + "\n```"
    parts = chunk("Guide", f"## A\n\n{SENTENCE * 14}\n\n{code}\n\n{SENTENCE * 10}", ["lamp"])
    assert any(code in part.text for part in parts)


def test_long_code_block_is_cut_between_lines_and_keeps_its_fences() -> None:
    lines = [f"lamp_{number} = light({number})" for number in range(100)]
    parts = chunk("Guide", "```py\n" + "\n".join(lines) + "\n```\n\nAfter.", ["lamp"])
    pieces = [part.text for part in parts if "```" in part.text]
    assert len(pieces) > 2
    assert all(text.startswith("```py\n") and text.count("```") == 2 for text in pieces)
    kept = [line for text in pieces for line in text.splitlines() if line.startswith("lamp_")]
    assert kept == lines


@pytest.mark.parametrize(
    "text",
    [
        ">" * 20_000 + " lamp",
        "- " * 20_000 + "lamp",
        "".join(f"{'>' * depth} lamp\n" for depth in range(300)),
        "".join(f"{'  ' * depth}- lamp\n" for depth in range(1000)),
    ],
)
def test_what_is_nested_too_deeply_is_cut_as_if_it_were_less(text: str) -> None:
    (page,) = parse("a.md", text.encode())
    assert page.warnings[-1] == "nested too deeply: read as less deep"
    used = time.process_time()
    parts = chunk("Lamps", page.content, ["lamp"])
    assert "lamp" in parts[-1].text
    # With all its levels each of them takes 30 seconds and more.
    assert time.process_time() - used < 10


def test_what_people_nest_is_left_as_it_is() -> None:
    text = "".join(f"{'    ' * depth}- lamp\n" for depth in range(11)) + "\n" + "> " * 9 + "oil"
    (page,) = parse("a.md", text.encode())
    assert page.content == text
    assert page.warnings == ["no front matter"]


def test_table_rows_and_list_items_stay_whole() -> None:
    items = [f"- Room: {n}; Price: {n * 10} €; View: over the harbour lamp" for n in range(60)]
    parts = chunk("Rooms", "## Prices\n\n" + "\n".join(items), ["lamp"])
    assert len(parts) > 3
    assert all(line in items for part in parts for line in part.text.splitlines())


def test_little_without_any_keyword_joins_its_neighbour() -> None:
    content = f"## A\n\n{SENTENCE}\n\n## B\n\nSee there."
    (part,) = chunk("Guide", content, ["lamp"])
    assert part.section == ("A",)
    assert part.text.endswith("**B**\n\nSee there.")


def test_an_announcement_joins_what_it_announces() -> None:
    content = f"## A\n\nHere are the options for the lamp:\n\n### B\n\n{SENTENCE}"
    (part,) = chunk("Guide", content, ["lamp"])
    assert part.section == ("A", "B")
    assert part.text.startswith("Here are the options for the lamp:")


def test_little_that_no_neighbour_has_room_for_stays() -> None:
    long = SENTENCE * 17 + "Only six more words stand here."
    parts = chunk("Guide", f"## A\n\n{long}\n\n## B\n\nSee there.\n\n## C\n\n{long}", ["lamp"])
    assert ("B",) in [part.section for part in parts]


def test_little_without_neighbour_and_keyword_is_dropped() -> None:
    assert merge_low([Part((), "See there.")], frozenset({"lamp"}), "Guide") == []


def test_endless_headings_leave_room_for_the_text() -> None:
    title = "Everything about lighthouses " * 40
    assert count_tokens(heading_path(title, ["A", "B"])) <= 64
    (part,) = chunk(title, SENTENCE, ["lamp"])
    assert seen(title, part) <= WINDOW


@pytest.mark.parametrize("text", ["x" * 5000, "漢字" * 900, "https://example.com/" + "a/" * 900])
def test_text_without_joints_is_cut_where_it_must(text: str) -> None:
    parts = chunk("Guide", f"guide {text}", ["guide"])
    assert all(seen("Guide", part) <= WINDOW for part in parts)
    assert sum(len(part.text) for part in parts) >= len(text)


@pytest.mark.parametrize(("window", "most"), [(128, 128), (512, 512), (8192, 600)])
def test_chunks_fill_the_window_and_take_600_tokens_at_most(window: int, most: int) -> None:
    parts = chunk("Guide", f"## A\n\n{SENTENCE * 200}", ["lamp"], window=window)
    sizes = [seen("Guide", part) for part in parts]
    assert max(sizes) <= most
    assert min(sizes[:-1]) > 0.6 * most


def test_each_chunk_knows_the_page_it_begins_on() -> None:
    content = f"# One\n\n{SENTENCE}\n\n# Two\n\n{SENTENCE * 40}\n\n{SENTENCE}"
    parts = chunk("Guide", content, ["lamp"], starts=[(0, 3), (4, 4), (8, 7)])
    assert [part.page for part in parts] == [3, 4, 4, 4]
    assert [part.page for part in chunk("Guide", content, ["lamp"])] == [None] * 4
    long = "\n\n".join([SENTENCE * 10] * 3)
    pages = [part.page for part in chunk("Guide", long, ["lamp"], starts=[(0, 1), (2, 2), (4, 9)])]
    assert pages == [1, 2, 9]


def test_long_table_is_cut_between_rows_and_repeats_its_headers() -> None:
    rows = [f"| Lamp {number} | {number} | over the harbour |" for number in range(80)]
    table = "\n".join(["| Name | Price | View |", "|---|---|---|", *rows])
    parts = chunk("Guide", f"## A\n\n{table}\n\nAfter the lamp.", ["lamp"])
    pieces = [part.text for part in parts if "|---|" in part.text]
    assert len(pieces) > 2
    assert all(text.startswith("| Name | Price | View |\n|---|---|---|\n| ") for text in pieces)
    kept = [line for text in pieces for line in text.splitlines() if line.startswith("| Lamp")]
    assert kept == rows


def test_code_within_a_long_list_item_stays_whole() -> None:
    code = "\n".join(["  ```py", *(f"  lamp_{n} = light({n})" for n in range(12)), "  ```"])
    parts = chunk("Guide", f"- {SENTENCE * 12}\n\n{code}\n\n  {SENTENCE * 8}", ["lamp"])
    whole = "\n".join(["```py", *(f"lamp_{n} = light({n})" for n in range(12)), "```"])
    assert len(parts) > 1
    assert any(whole in part.text.replace("\n  ", "\n") for part in parts)


def test_no_block_of_a_text_is_left_out() -> None:
    content = "Intro\n\n# H\n\n| A |\n|---|\n| 1 |\n\n```\nx\n```\n\n- a\n- b\n\n    code\n"
    found = [(block.kind, block.text.strip()) for block in split_blocks(content)]
    assert found == [
        ("text", "Intro"),
        ("text", "H"),
        ("table", "| A |\n|---|\n| 1 |"),
        ("code", "```\nx\n```"),
        ("text", "- a"),
        ("text", "- b\n\n    code"),
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                [
                    "# H",
                    "## Sub",
                    "### Deep",
                    "- item",
                    "1. one",
                    "> quote",
                    "```",
                    "| a |\n|---|",
                    "| b |",
                    "",
                ]
            ),
            st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200),
            st.integers(1, 60).map(lambda count: SENTENCE * count),
        ),
        max_size=14,
    )
)
def test_no_chunk_of_any_text_exceeds_the_window(lines: list[str]) -> None:
    for part in chunk("Guide", "\n".join(lines), ["lamp"]):
        assert part.text.strip()
        assert seen("Guide", part) <= WINDOW
        assert len(part.section) <= 3
