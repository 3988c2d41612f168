"""Extraction: a passage taken apart, so that what belongs together is quoted together."""

from agents.attributes import SourceReference
from agents.documentation.extraction import Excerpt, excerpts_of
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


def excerpts(text: str) -> list[Excerpt]:
    return excerpts_of(SourceReference(**FIELDS, text=text), rank=0)


def test_steps_belong_together_with_the_sentence_that_leads_to_them() -> None:
    parts = excerpts(CLEANING)
    series = {each.series for each in parts if each.kind == "item"}
    assert len(series) == 1
    (lead,) = [each for each in parts if each.kind == "prose" and each.series in series]
    assert lead.text == "To descale the machine:"


def test_rows_of_a_table_stand_alone_and_are_no_steps() -> None:
    rows = "- Plan: Small; Seats: 3; Price: 9\n- Plan: Large; Seats: 30; Price: 90"
    assert [(each.kind, each.series) for each in excerpts(rows)] == [("row", -1), ("row", -1)]


def test_an_item_with_one_colon_is_still_an_item() -> None:
    assert [each.kind for each in excerpts("- Note: rinse twice\n- Then: dry it")] == [
        "item",
        "item",
    ]
