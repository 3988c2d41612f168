"""PDF: lines become paragraphs, headings, lists and tables again, and pages keep their numbers."""

import pytest

from knowledge.errors import Unreadable
from knowledge.parsing import Limits, Page
from knowledge.parsing.dispatch import parse
from tests.knowledge.crafted import pdf, vertical_pdf

Lines = list[tuple[str, float, float, float, str]]


def read(*pages: Lines) -> Page:
    (page,) = parse("a.pdf", pdf(pages))
    return page


def prose(*texts: str, top: float = 600, left: float = 50) -> Lines:
    """Lines of ten points under each other."""
    return [("F", 10, left, top - 12 * place, text) for place, text in enumerate(texts)]


def test_lines_flow_together_and_divided_words_are_one() -> None:
    page = read(
        prose("The keeper of the light-", "house lights the well-known lamp.", "It is well-")
        + prose("known.", top=564)
        + prose("Another paragraph.", top=540)
    )
    assert page.content == (
        "The keeper of the lighthouse lights the well-known lamp. It is well-known.\n\n"
        "Another paragraph."
    )


def test_headings_are_told_by_size_and_weight() -> None:
    page = read(
        [
            ("B", 20, 50, 700, "Lamps"),
            ("B", 14, 50, 650, "Oil lamps"),
            *prose("They burn all night long, and they need oil.", "Somebody must fill them."),
            ("B", 10, 50, 560, "Filling"),
            *prose("Every evening before the ships come in.", top=540),
        ]
    )
    assert page.content.splitlines()[::2] == [
        "# Lamps",
        "## Oil lamps",
        "They burn all night long, and they need oil. Somebody must fill them.",
        "### Filling",
        "Every evening before the ships come in.",
    ]
    assert page.title == "Lamps"


def spread(*texts: str, top: float = 700) -> Lines:
    """Lines of one size: those that end in a full stop below each other, a gap above the others."""
    found: Lines = []
    for text in texts:
        top -= 12 if text.endswith(".") else 30
        found.append(("F", 10, 50, top, text))
    return found


LONG = "Somebody must fill the lamps every evening before the ships come in."


def test_headings_set_like_the_text_are_told_by_capitals_and_running_numbers() -> None:
    text = [LONG] * 12
    page = read(spread("OPENING HOURS", *text, "WHO MAY ENTER", *text))
    assert page.content.split("\n\n")[::2] == ["## OPENING HOURS", "## WHO MAY ENTER"]
    lines = ("1. Opening", LONG, "1.1 By day", LONG, "1.2 By night", LONG, LONG, "2. Prices", LONG)
    assert read(spread(*lines)).content.split("\n\n")[::2] == [
        "## 1. Opening",
        "### 1.1 By day",
        "### 1.2 By night",
        "## 2. Prices",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ("What it takes.", "1. A lamp", "2. A match", "3. Some oil", LONG),
        (LONG, "1. Lamps", LONG, "3. Oil", LONG, "7. Ships", LONG),
        (LONG, "1. Lamps", LONG, "2. Oil", LONG),
        ("OIL FOR ALL", "OIL FOR NONE", "OIL AT NIGHT", "OIL BY DAY", LONG),
        (LONG, "ISO", LONG),
    ],
)
def test_spaced_lists_chance_numbers_and_text_all_in_capitals_are_no_headings(
    lines: tuple[str, ...],
) -> None:
    assert "#" not in read(spread(*lines)).content


def test_a_line_in_a_font_of_its_own_above_the_text_is_a_heading() -> None:
    text = prose(*[LONG] * 12, top=580)
    page = read([("I", 10, 50, 600, "Lamps"), *text])
    assert page.content.startswith("## Lamps\n\n")


def test_lists_and_simple_tables_are_read() -> None:
    page = read(
        prose("Of lamps there are many kinds, and they are these:")
        + prose("• oil lamps which burn all", top=580)
        + prose("night long", top=568, left=60)
        + prose("• gas lamps", top=556)
        + [
            ("F", 10, x, y, text)
            for y, row in [(500, "Name Price Seats"), (488, "Lamp 3 12"), (476, "Lantern 4 15")]
            for x, text in zip((50, 200, 300), row.split(), strict=True)
        ]
    )
    assert page.content == (
        "Of lamps there are many kinds, and they are these:\n\n"
        "- oil lamps which burn all night long\n- gas lamps\n\n"
        "- Name: Lamp; Price: 3; Seats: 12\n- Name: Lantern; Price: 4; Seats: 15"
    )


def test_pages_keep_their_numbers_and_lose_their_headers() -> None:
    page = read(
        *(
            [
                ("F", 9, 50, 770, "The lamp company, 2026"),
                ("F", 9, 300, 30, f"Page {number}"),
                *prose(f"What stands on page {'abcd'[number - 1]} is this."),
            ]
            for number in (1, 2, 3, 4)
        )
    )
    lines = page.content.splitlines()
    assert [(lines[line], number) for line, number in page.starts] == [
        (f"What stands on page {'abcd'[number - 1]} is this.", number) for number in (1, 2, 3, 4)
    ]
    assert "company" not in page.content


def test_a_paragraph_goes_on_over_the_page() -> None:
    page = read(prose("The keeper lights"), prose("the lamp.", top=700))
    assert page.content == "The keeper lights the lamp."
    assert page.starts == [(0, 1)]


def test_pages_without_text_are_named() -> None:
    page = read(prose("Words."), [])
    assert page.warnings == ["no text on 1 of 2 pages: 2"]


# Widths of Helvetica, in thousandths of its size; all others are as wide as an "n".
WIDTHS = {"M": 833, "f": 278, "i": 222, "l": 222, "t": 278, "r": 333, " ": 278}


def letters(text: str, font: str, left: float, top: float) -> Lines:
    """A line of ten points, each letter printed for itself."""
    placed: Lines = []
    for sign in text:
        placed += [(font, 10, round(left, 2), top, sign)] if sign != " " else []
        left += WIDTHS.get(sign, 556) / 100
    return placed


@pytest.mark.parametrize("moved", [0, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("again", ["F", "B"])
def test_letters_printed_twice_to_look_bold_are_read_once(again: str, moved: float) -> None:
    text = "Muna filling all three letters here"
    plain = letters(text, "F", 50, 600)
    shifted = letters(text, again, 50 + moved, 600)
    assert read(plain + shifted).content == text
    one_by_one = [each for pair in zip(plain, shifted, strict=True) for each in pair]
    assert read(one_by_one).content == text


def test_lines_printed_twice_are_read_once_and_lines_that_say_the_same_twice() -> None:
    page = prose("The first lamp burns.", "The next lamp burns.", "Yes.", "Yes.")
    expected = "The first lamp burns. The next lamp burns. Yes. Yes."
    assert read(page).content == expected
    shadow = [("B", size, x + 0.3, y - 0.3, text) for _, size, x, y, text in page]
    assert read(page + shadow).content == expected


POEM = ["わたくしといふ現象は", "仮定された有機交流電燈の", "ひとつの青い照明です。"]


def test_vertical_text_is_read_from_the_right_whatever_was_drawn_first() -> None:
    columns = [(500 - 17.0 * place, 700.0, text) for place, text in enumerate(POEM)]
    for drawn in (columns, columns[::-1]):
        (page,) = parse("a.pdf", vertical_pdf(drawn))
        assert (page.content, page.warnings) == ("".join(POEM), [])


def test_vertical_text_drawn_sign_by_sign_is_read() -> None:
    signs = [
        (500 - 17.0 * column, 700.0 - 10 * place, sign)
        for column, text in enumerate(POEM)
        for place, sign in enumerate(text)
    ]
    assert parse("a.pdf", vertical_pdf(signs))[0].content == "".join(POEM)


ENCRYPTED = (
    "/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<" + "00" * 32 + ">/U<" + "11" * 32 + ">>>"
    "/ID[<00><00>]"
)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (pdf([prose("x")], count=100_000), "it has 100,000 pages, more than 20"),
        (pdf([prose("x")], trailer=ENCRYPTED), "protected by a password"),
        (pdf([[], []]), "it has no text, only pictures"),
        (pdf([prose("x")])[:200], "it is damaged, or no PDF"),
        (pdf([prose("\x01\x02\x03" * 9)]), "don't say which letters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        parse("a.pdf", body, Limits(max_pages=20))


def test_pages_that_are_claimed_and_not_there_are_read_as_empty() -> None:
    (page,) = parse("a.pdf", pdf([prose("Words.")], count=5))
    assert page.content == "Words."
