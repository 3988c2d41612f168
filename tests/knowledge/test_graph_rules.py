"""Graph rules: terms, references and days that a document states by its form."""

from datetime import date

import pytest

from knowledge.chunking import Part
from knowledge.graph import Graph
from knowledge.graph_rules import draw
from knowledge.parsing import Page

LEASE = (
    Part(("1 Flat",), "\u201cFlat\u201d means the rooms on the first floor, see section 2.1."),
    Part(("2 Rent", "2.1 Due date"), "The rent is due monthly. Regulation (EU) 2016/679 applies."),
    Part(("3 Term",), "This lease takes effect on 1 March 2025 and is valid until 2027-02-28."),
)


def drawn(*parts: Part, title: str = "Lease", language: str = "en") -> Graph:
    content = "\n\n".join(part.text for part in parts)
    return draw(Page(content, title=title, language=language), parts)


def stated(graph: Graph) -> dict[tuple[str, str], str]:
    return {(each.subject, each.predicate): each.object for each in graph.relations}


def test_a_document_defines_refers_begins_and_ends() -> None:
    graph = drawn(*LEASE)
    assert stated(graph) == {
        ("Lease", "defines"): "Flat",
        ("Lease: 1 Flat", "refers to"): "Lease: 2.1 Due date",
        ("Lease", "refers to"): "2016/679",
        ("Lease", "takes effect on"): "2025-03-01",
        ("Lease", "ends on"): "2027-02-28",
    }
    held = {each.predicate: (each.valid_from, each.valid_to) for each in graph.relations}
    assert held["takes effect on"] == (date(2025, 3, 1), None)
    assert held["ends on"] == (None, date(2027, 2, 28))
    assert [each.part for each in graph.relations] == [0, 0, 1, 2, 2]


def test_every_end_of_a_relation_is_an_entity_and_sections_keep_their_headings() -> None:
    graph = drawn(*LEASE)
    names = {each.name: each for each in graph.entities}
    assert {each.subject for each in graph.relations} <= names.keys()
    assert {each.object for each in graph.relations} <= names.keys()
    assert names["Lease: 2.1 Due date"].aliases == ("2.1 Due date",)
    assert {each.kind for each in graph.entities} == {"document", "term", "section", "law", "date"}


@pytest.mark.parametrize(
    ("language", "text", "day"),
    [
        ("de", "Der Vertrag gilt ab dem 1. März 2025.", "2025-03-01"),
        ("de", "Er tritt am 01.03.2025 in Kraft.", "2025-03-01"),
        ("fr", "Il prend effet le 1er mars 2025.", "2025-03-01"),
        ("es", "Entra en vigor el 1 de marzo de 2025.", "2025-03-01"),
        ("cs", "Vyhláška nabývá účinnosti dnem 1. ledna 2017.", "2017-01-01"),
        ("pl", "Umowa obowiązuje od 1 marca 2025.", "2025-03-01"),
        ("ru", "Договор действует с 1 марта 2025.", "2025-03-01"),
        ("zh", "本合同自2025年3月1日起生效。", "2025-03-01"),
        ("en", "It is effective March 1, 2025.", "2025-03-01"),
    ],
)  # fmt: skip
def test_days_are_read_as_languages_write_them(language: str, text: str, day: str) -> None:
    graph = drawn(Part((), text), language=language)
    assert stated(graph) == {("Lease", "takes effect on"): day}


@pytest.mark.parametrize(
    "text",
    [
        "The fare was 1/2025 of the price, and 3/4 of it in 06/2025.",
        "It was written on 1 March 2025.",
        "It takes effect on 31 February 2025.",
        "See section 9.",
        "The flat has three rooms.",
    ],
)
def test_what_only_looks_like_a_statement_is_none(text: str) -> None:
    assert drawn(Part(("1 Flat",), text)) == Graph()


def test_a_reference_to_the_section_itself_and_a_document_without_title_state_nothing() -> None:
    assert drawn(Part(("2.1 Rent",), "As section 2.1 says, it is due.")) == Graph()
    assert drawn(*LEASE, title=" ") == Graph()
