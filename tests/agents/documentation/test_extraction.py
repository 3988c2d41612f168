"""Extraction: one place is quoted, and what belongs together stays together."""

import pytest

from agents.attributes import SourceReference
from agents.documentation.extraction import Quotation, blocks_of, quotations
from tests.agents.passages import CLEANING

FIELDS = {
    "marker": "C1",
    "document_id": "d",
    "version": 1,
    "title": "Care",
    "section": "",
    "crumbs": [],
    "source": "care.md",
    "chunk_id": 1,
    "score": 0.5,
}
FILLER = "\n\n".join(
    f"Paragraph {number} speaks of how the warehouse was built, who paid for it, and in which "
    "year the roof was finished by workers from the village."
    for number in range(1, 12)
)


def reference(text: str, marker: str = "C1") -> SourceReference:
    return SourceReference(**FIELDS | {"marker": marker}, text=text)


def quoted(question: str, *texts: str, notes: tuple[str, ...] = ()) -> Quotation:
    references = [reference(text, f"C{number}") for number, text in enumerate(texts, start=1)]
    (found,) = quotations(question, references, notes)
    return found


def test_short_place_is_quoted_whole_with_one_marker() -> None:
    text = "Rinse the pot with hot water.\n\nSoap spoils the taste, so leave it out."
    answer = quoted("May I use soap?", text).markdown()
    assert answer == f"{text} [C1]"


@pytest.mark.parametrize(
    ("first", "second", "markers"),
    [
        (
            "Rinse the pot with hot water after each use.",
            "Soap spoils the taste of the tea for weeks.",
            "12",
        ),
        ("Rinse the pot with hot water after each use.", FILLER, "12"),
        (FILLER, "Soap spoils the taste of the tea for weeks.", "12"),
        (FILLER + "\n\n" + FILLER, "Rinse the pot.", "1"),  # too short to say anything
        ("Rinse the pot with hot water. Soap spoils the tea.", "Soap spoils the tea.", "1"),
    ],
)
def test_a_second_place_is_quoted_where_it_adds_something_and_there_is_room(
    first: str, second: str, markers: str
) -> None:
    references = [reference(first, "C1"), reference(second, "C2")]
    found = quotations("May I use soap for the pot?", references, (), places=2)
    assert "".join(each.reference.marker[1] for each in found) == markers
    assert sum(each.size for each in found) <= 180


def test_of_three_places_none_takes_the_room_of_the_others() -> None:
    texts = [FILLER, FILLER.replace("Paragraph", "Section"), CLEANING]
    references = [reference(text, f"C{number}") for number, text in enumerate(texts, start=1)]
    found = quotations("May I use soap for the pot?", references, (), places=3)
    assert [each.reference.marker for each in found] == ["C1", "C2", "C3"]
    assert all(each.size <= 100 for each in found)


@pytest.mark.parametrize("note", ["brief", "2 sentences", "detailed"])
def test_who_wishes_for_a_length_gets_one_place(note: str) -> None:
    references = [
        reference(CLEANING, "C1"),
        reference("Soap spoils the taste of the tea for weeks.", "C2"),
    ]
    assert len(quotations("May I use soap?", references, (note,), places=2)) == 1


def test_steps_are_quoted_to_the_last_though_they_are_longer_than_an_answer() -> None:
    steps = "\n".join(f"{n}. Turn valve number {n} to the left by a quarter." for n in range(1, 25))
    text = f"{FILLER}\n\nTo drain the boiler:\n\n{steps}\n\n{FILLER}"
    answer = quoted("How do I drain the boiler?", text).markdown()
    assert "To drain the boiler:" in answer
    assert "1. Turn valve number 1 " in answer
    assert "24. Turn valve number 24 " in answer
    assert "Paragraph 3" not in answer


def test_steps_go_on_behind_code_that_stands_between_them() -> None:
    steps = "\n".join(f"{n}. Open the valve {n} with the long key." for n in range(1, 13))
    code = "```ini\nvalve=open\n```"
    text = f"{FILLER}\n\nTo drain the boiler:\n\n{steps}\n{code}\n13. Let it cool.\n\n{FILLER}"
    answer = quoted("How do I drain the boiler with the key?", text, notes=("brief",)).markdown()
    assert "1. Open the valve 1 " in answer
    assert code in answer
    assert "13. Let it cool." in answer
    assert "Paragraph" not in answer


def test_other_steps_under_another_heading_are_no_part_of_a_procedure() -> None:
    steps = "1. Open the valve with the key.\n2. Wait until it is dry."
    other = f"1. Paint the boiler{' and its many pipes' * 12}.\n2. Paint it again."
    text = f"To drain the boiler:\n\n{steps}\n\n**Paint**\n\n{other}\n\n{FILLER}"
    answer = quoted("How do I drain the boiler?", text, notes=("brief",)).markdown()
    assert "2. Wait until it is dry." in answer
    assert "2. Paint it again." not in answer


def test_long_place_is_quoted_from_where_it_is_nearest() -> None:
    text = f"{FILLER}\n\nThe lamp is guaranteed for nine years.\n\n{FILLER}"
    answer = quoted("How long is the guarantee of the lamp?", text).markdown()
    assert answer.startswith("The lamp is guaranteed for nine years.")


def test_code_comes_with_the_sentence_before_it() -> None:
    code = "```sh\nlamp calibrate --colour\n```"
    text = f"{FILLER}\n\nCalibrate the colour of the lamp so:\n\n{code}\n\n{FILLER}"
    answer = quoted("lamp calibrate colour command", text).markdown()
    assert f"Calibrate the colour of the lamp so:\n\n{code}" in answer


def test_of_a_long_list_the_items_that_answer_are_quoted() -> None:
    items = [f"- The room {n} has a window to the north and a shelf for books." for n in range(30)]
    items[17] = "- The cellar holds the wine, which is counted every Sunday."
    text = "About the house:\n\n" + "\n".join(items)
    answer = quoted("Where is the wine?", text).markdown()
    assert "The cellar holds the wine" in answer
    assert "About the house:" in answer
    assert len(answer.splitlines()) < 16


def test_rows_of_a_table_are_a_table_again() -> None:
    rows = "- Plan: Small; Seats: 3; Price: 9\n- Plan: Large; Seats: 30; Price: 9 | 90"
    answer = quoted("What does the large plan cost?", rows).markdown()
    assert answer.splitlines() == [
        "| Plan | Seats | Price |",
        "| --- | --- | --- |",
        "| Small | 3 | 9 |",
        r"| Large | 30 | 9 \| 90 |",
        "",
        "[C1]",
    ]


def test_list_whose_items_have_a_colon_is_no_table() -> None:
    text = "- Note: rinse the pot twice; dry it\n- Then: put it on the shelf"
    assert "|" not in quoted("What comes then?", text).markdown()


def test_a_paragraph_too_long_for_the_room_that_is_left_begins_in_it() -> None:
    long = " ".join(f"The meter counts part {count} of the water in drops." for count in range(40))
    text = f"The water report sums up what the pot took.\n\n{long}\n\n{FILLER}"
    answer = quoted("What does the water report sum up?", text)
    assert "part 3 of the water in drops." in answer.markdown()
    assert answer.markdown().endswith("in drops. [C1]")
    assert 120 <= answer.size <= 150


def test_place_without_a_sentence_is_passed_over() -> None:
    answer = quoted("How do I clean it?", "**Cleaning**\n\n- See also", CLEANING)
    assert answer.reference.marker == "C2"


def test_nothing_is_quoted_of_titles_alone() -> None:
    assert quotations("How do I clean it?", [reference("# Cleaning\n\n## More")], ()) == []


def test_rules_between_paragraphs_are_not_quoted() -> None:
    answer = quoted("Who pays?", "The owner pays for the roof and the walls.\n\n---").markdown()
    assert answer == "The owner pays for the roof and the walls. [C1]"


@pytest.mark.parametrize(("wish", "fewest", "most"), [("brief", 20, 60), ("detailed", 200, 330)])
def test_wished_length_is_kept(wish: str, fewest: int, most: int) -> None:
    text = f"{FILLER}\n\n{FILLER}"
    size = len(quoted("When was the roof finished?", text, notes=(wish,)).markdown().split())
    assert fewest <= size <= most


def test_number_of_sentences_wished_for_is_kept() -> None:
    text = "It is red. It is round. It is small. It costs nothing at all to anybody who asks."
    assert quoted("What is it like?", text, notes=("2 sentences",)).markdown() == (
        "It is red. It is round. [C1]"
    )


def test_every_quote_stands_in_its_passage_word_for_word() -> None:
    items = "\n".join(f"- Room {n}: a window to the north, a shelf for books." for n in range(40))
    text = f"{FILLER}\n\nThe rooms:\n\n{items}"
    for quote in quoted("Which room has a shelf for books?", text).quotes:
        assert " ".join(quote.split()) in " ".join(text.split())


def test_list_that_leads_nowhere_ends_no_quotation() -> None:
    text = f"{FILLER}\n\nThe lamp is red.\n\nThese are its parts:\n\n{FILLER}\n\n{FILLER}"
    answer = quoted("Which colour is the lamp?", text, notes=("brief",)).markdown()
    assert not answer.removesuffix(" [C1]").endswith(":")


def test_blocks_know_their_kind() -> None:
    text = "# Care\n\n**Water**\n\nBoil it:\n\n1. Fill.\n2. Boil.\n\n- tea\n\n```\nx\n```"
    kinds = [block.kind for block in blocks_of(text)]
    assert kinds == ["heading", "heading", "prose", "step", "step", "item", "code"]
