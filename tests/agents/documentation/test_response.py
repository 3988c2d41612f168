"""Response: an answer made of cited sentences."""

import re
from typing import Any

import pytest

from agents.documentation.augmentation import assemble
from agents.documentation.response import answer
from tests.agents.passages import PASSAGES


def answered(question: str, **payload: Any) -> dict[str, Any]:
    material = {
        "canonical_question": question,
        "language": "en",
        "search_results": PASSAGES,
    } | payload
    return answer(material | assemble(material))


def body(writes: dict[str, Any]) -> str:
    return str(writes["response"]).split("\n\nSources:")[0]


def test_steps_stay_together_in_order_with_their_lead_in() -> None:
    lines = [line for line in body(answered("How do I descale the machine?")).splitlines() if line]
    lead = lines.index("To descale the machine:")
    assert [line[:2] for line in lines[lead + 1 : lead + 4]] == ["1.", "2.", "3."]


def test_a_place_that_search_is_sure_of_stands_alone_with_one_marker() -> None:
    writes = answered("How do I descale the machine?", search_stats={"certainty": 0.8})
    assert re.findall(r"\[(C\d+)\]", body(writes)) == ["C1"]
    assert writes["answer_form"] == "quoted"


def test_below_a_place_that_search_is_not_sure_of_the_next_one_stands_with_its_own_title() -> None:
    writes = answered("How do I descale the machine?", search_stats={"certainty": 0.7})
    first, second = (each["section"] or each["title"] for each in writes["sources_used"])
    assert re.findall(r"\[(C\d+)\]", body(writes)) == ["C1", "C2"]
    assert re.findall(r"(?m)^\*\*(.+)\*\*$", body(writes)) == [f"Care > {first}", second]
    assert [each["marker"] for each in writes["citations_used"]] == ["C1", "C2"]
    assert {each["citation_status"] for each in writes["citations_used"]} == {"verified"}
    assert not {first, second} & {title.split(" > ")[-1] for title in writes["suggested_actions"]}


def test_a_name_that_the_next_place_has_is_not_said_to_be_missing() -> None:
    question = "What does the warranty cover after 2 years, in Canada?"
    canada = PASSAGES[1] | {
        "text": "In Canada the warranty covers parts and work for 2 years.",
        "chunk_id": 77,
        "section": "Canada",
    }
    writes = answered(
        question, search_results=[PASSAGES[1], canada, PASSAGES[0]], search_stats={"certainty": 0.7}
    )
    assert writes["answer_form"] == "closest"
    assert "In Canada the warranty" in writes["response"]
    assert "do not mention" not in writes["response"]


def test_further_places_are_named_but_not_quoted() -> None:
    writes = answered("How do I descale the machine?", search_stats={"certainty": 0.8})
    assert 1 <= len(writes["suggested_actions"]) <= 2
    assert not any("Descaling" in title for title in writes["suggested_actions"])


@pytest.mark.parametrize(("certainty", "form"), [(0.9, "quoted"), (0.3, "closest")])
def test_a_place_that_may_not_answer_is_called_the_closest(certainty: float, form: str) -> None:
    writes = answered("How do I descale the machine?", search_stats={"certainty": certainty})
    assert writes["answer_form"] == form
    assert writes["generation_confidence"] == certainty
    assert ("nothing in the documents comes closer" in writes["response"]) == (form == "closest")


def test_a_place_without_the_name_asked_for_is_only_the_closest_and_says_which() -> None:
    certain = {"certainty": 0.95}
    places = [PASSAGES[1], PASSAGES[0]]
    writes = answered(
        "What does the warranty cover in Canada?", search_results=places, search_stats=certain
    )
    assert writes["answer_form"] == "closest"
    assert writes["generation_confidence"] < 0.2
    assert "do not mention: Canada." in writes["response"]
    covered = answered(
        "What does the warranty cover after 2 years?", search_results=places, search_stats=certain
    )
    assert covered["answer_form"] == "quoted"


def test_every_quote_stands_in_its_passage() -> None:
    writes = answered("What does the warranty cover?")
    texts = {p["chunk_id"]: p["text"] for p in PASSAGES}
    assert writes["citations_used"]
    for citation in writes["citations_used"]:
        words = " ".join(citation["quote"].split())
        assert words in " ".join(texts[citation["chunk_id"]].split())
        assert citation["citation_status"] == "verified"


def test_links_into_the_documents_are_left_out_of_the_answer_only() -> None:
    writes = answered("How do I descale the machine?")
    assert "care.md)" not in body(writes)
    assert any("(care.md)" in citation["quote"] for citation in writes["citations_used"])


def test_the_sources_are_listed_with_section_file_and_version() -> None:
    writes = answered("How do I descale the machine?")
    assert "- Care — Descaling — handbook/care.md (version 1)" in writes["response"]
    assert writes["sources_used"][0]["title"] == "Care"


def test_words_searched_for_instead_of_typed_ones_are_told_first() -> None:
    stats = {"certainty": 0.9, "corrected": {"machne": "machine"}}
    response = answered("How do I descale the machine?", search_stats=stats)["response"]
    assert response.startswith("Searched for: machine.")


def test_nothing_is_said_twice() -> None:
    writes = answered("What does the warranty cover?", search_results=[PASSAGES[1], PASSAGES[1]])
    quotes = [citation["quote"] for citation in writes["citations_used"]]
    assert len(quotes) == len(set(quotes))


def test_another_language_is_told_that_documents_are_quoted() -> None:
    writes = answered("How do I descale the machine?", language="ru")
    assert writes["response"].startswith("Вот что говорят документы")
    assert "Источники:" in writes["response"]


def test_where_nothing_fits_it_asks_and_names_what_is_missing() -> None:
    writes = answered(
        "Who invented the steam locomotive?",
        search_results=PASSAGES[2:],
        search_stats={"certainty": 0.03},
    )
    assert writes["needs_clarification"]
    assert "locomotive" in writes["clarification_message"]
    assert "response" not in writes


def test_words_of_another_language_are_not_called_missing() -> None:
    for certainty in (0.03, 0.3):
        stats = {"certainty": certainty, "is_foreign": True}
        writes = answered("Wann wird entkalkt?", search_stats=stats, language="de")
        said = writes.get("response", "") + writes.get("clarification_message", "")
        assert "entkalkt" not in said
        assert "erwähnen" not in said


def test_names_in_a_long_story_need_not_be_in_the_place() -> None:
    story = (
        "I bought the machine in Canada in 2019 from a friend of my brother who had it from his "
    )
    story += "aunt in Texas, and now I wonder what the warranty covers. What does it cover?"
    places = [PASSAGES[1], PASSAGES[0]]
    writes = answered(story, search_results=places, search_stats={"certainty": 0.9})
    assert writes["answer_form"] == "quoted"


def test_without_passages_it_asks() -> None:
    writes = answered("How do I descale the machine?", search_results=[])
    assert writes["clarification_reason"] == "insufficient_context"


def test_what_quality_found_unsupported_is_not_said_again() -> None:
    quote = answered("What does the warranty cover?")["citations_used"][0]["quote"]
    again = answered("What does the warranty cover?", quality_analysis=f"Off the point:\n{quote}")
    assert quote not in str(again.get("citations_used"))
