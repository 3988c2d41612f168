"""Response: an answer made of cited sentences."""

import re
from typing import Any

import pytest

from agents.documentation.augmentation import assemble
from agents.documentation.response import answer
from tests.agents.passages import PASSAGES


def answered(question: str, **payload: Any) -> dict[str, Any]:
    given = {"canonical_question": question, "language": "en", "search_results": PASSAGES} | payload
    return answer(given | assemble(given))


def body(writes: dict[str, Any]) -> str:
    return str(writes["response"]).split("\n\nSources:")[0]


def test_steps_stay_together_in_order_with_their_lead_in() -> None:
    lines = body(answered("How do I descale the machine?")).splitlines()
    lead = lines.index("To descale the machine: [C1]")
    assert [line[:2] for line in lines[lead + 1 : lead + 4]] == ["1.", "2.", "3."]


def test_every_line_carries_a_marker_that_exists() -> None:
    writes = answered("How do I descale the machine?")
    assert set(re.findall(r"\[(C\d+)\]", body(writes))) <= {"C1", "C2", "C3"}
    assert all("[C" in line for line in body(writes).splitlines() if line)


def test_every_quote_stands_in_its_passage() -> None:
    writes = answered("What does the warranty cover?")
    texts = {p["chunk_id"]: p["text"] for p in PASSAGES}
    assert writes["citations_used"]
    for citation in writes["citations_used"]:
        assert citation["quote"] in texts[citation["chunk_id"]]
        assert citation["citation_status"] == "verified"


def test_links_into_the_documents_are_left_out_of_the_answer_only() -> None:
    writes = answered("How do I descale the machine?")
    assert "care.md)" not in body(writes)
    assert any("(care.md)" in citation["quote"] for citation in writes["citations_used"])


def test_the_sources_are_listed_with_section_file_and_version() -> None:
    writes = answered("How do I descale the machine?")
    assert "- Care — Descaling — handbook/care.md (version 1)" in writes["response"]
    assert writes["sources_used"][0]["title"] == "Care"


@pytest.mark.parametrize(("note", "most"), [("2 lines", 2), ("1 sentences", 1), ("brief", 2)])
def test_the_wished_length_is_kept(note: str, most: int) -> None:
    writes = answered("What does the warranty cover?", response_notes=[note])
    assert 1 <= len(writes["citations_used"]) <= most


def test_nothing_is_said_twice() -> None:
    writes = answered("What does the warranty cover?", search_results=[PASSAGES[1], PASSAGES[1]])
    quotes = [citation["quote"] for citation in writes["citations_used"]]
    assert len(quotes) == len(set(quotes))


def test_another_language_is_told_that_documents_are_quoted() -> None:
    writes = answered("How do I descale the machine?", language="ru")
    assert writes["response"].startswith("Вот что говорят документы")
    assert "Источники:" in writes["response"]


def test_where_nothing_fits_it_asks_and_names_what_is_missing() -> None:
    writes = answered("Who invented the steam locomotive?", search_results=PASSAGES[2:])
    assert writes["needs_clarification"]
    assert "locomotive" in writes["clarification_message"]
    assert "response" not in writes


def test_without_passages_it_asks() -> None:
    writes = answered("How do I descale the machine?", search_results=[])
    assert writes["clarification_reason"] == "insufficient_context"


def test_what_quality_found_unsupported_is_not_said_again() -> None:
    quote = answered("What does the warranty cover?")["citations_used"][0]["quote"]
    again = answered("What does the warranty cover?", quality_analysis=f"Not in: {quote}")
    assert quote not in str(again.get("citations_used"))
