"""Quality: whether cited sentences are in their passages and the answer is to the point."""

from typing import Any

import pytest

from agents.documentation.augmentation import assemble
from agents.documentation.citing import support
from agents.documentation.quality import review
from agents.documentation.response import answer
from tests.agents.passages import CLEANING, PASSAGES

QUESTION = "How do I descale the machine?"


def draft(question: str = QUESTION) -> dict[str, Any]:
    given = {"canonical_question": question, "language": "en", "search_results": PASSAGES}
    payload = given | assemble(given)
    return payload | answer(payload)


def test_an_extractive_answer_to_the_point_is_approved() -> None:
    writes = review(draft())
    assert writes["quality_decision"] == "approve"
    assert writes["quality_score"] >= 0.7
    assert writes["validation_result"]["unsupported"] == 0


def test_a_sentence_no_passage_holds_sends_the_answer_back() -> None:
    payload = draft()
    invented = "Pour vinegar over the heating coil."
    payload["citations_used"][0] |= {"quote": invented, "citation_status": "verified"}
    writes = review(payload)
    assert writes["quality_decision"] == "regenerate"
    assert invented in writes["quality_analysis"]


def test_a_marker_nobody_gave_sends_the_answer_back() -> None:
    payload = draft()
    payload["response"] += " It also makes tea. [C9]"
    writes = review(payload)
    assert writes["quality_decision"] == "regenerate"
    assert writes["validation_result"]["unknown_markers"] == ["C9"]


def test_an_answer_beside_the_point_is_searched_again() -> None:
    payload = draft() | {"canonical_question": "Which steam locomotives run on Sundays?"}
    writes = review(payload)
    assert writes["quality_decision"] == "research"
    assert "locomotives" in writes["refined_query"]


def test_an_answer_without_citations_scores_nothing() -> None:
    writes = review(draft() | {"citations_used": [], "response": "Trust me."})
    assert writes["quality_score"] == 0


@pytest.mark.parametrize(
    ("sentence", "status"),
    [
        ("Press the **Clean** button for five seconds. [C1]", "verified"),
        ("press the clean button for five seconds", "verified"),
        ("Rinse the tank twice. See the care guide.", "verified"),
        ("The Clean button is pressed for five seconds.", "weak"),
        ("Press the red button for ten minutes at night.", "unsupported"),
        ("", "unsupported"),
    ],
)
def test_support_is_exact_or_by_most_terms_or_none(sentence: str, status: str) -> None:
    assert support(sentence, CLEANING) == status
