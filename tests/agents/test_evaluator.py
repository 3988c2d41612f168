"""Evaluator: whether passages are enough, and what they lack."""

from typing import Any

from agents.documentation.evaluator import evaluate
from tests.agents.passages import PASSAGES


def judged(question: str, passages: list[dict[str, Any]]) -> dict[str, Any]:
    return evaluate({"canonical_question": question, "search_results": passages})


def test_passages_that_mention_everything_are_sufficient() -> None:
    writes = judged("How do I descale the machine?", PASSAGES)
    assert writes["evaluation"]["sufficient"] is True
    assert writes["evaluation"]["missing"] == ""
    assert writes["refined_query"] == ""
    assert writes["needs_clarification"] is False


def test_terms_no_passage_mentions_are_missing() -> None:
    writes = judged("How do I replace the steam wand gasket?", PASSAGES[1:])
    assert writes["evaluation"]["sufficient"] is False
    assert writes["limitations"] == ["replace", "steam", "wand", "gasket"]
    assert writes["refined_query"] == "replace steam wand gasket"


def test_inflected_words_count_as_mentioned() -> None:
    assert judged("Which defect is covered?", PASSAGES)["limitations"] == []


def test_without_anything_usable_the_user_is_asked() -> None:
    writes = judged("How do I replace the steam wand gasket?", [])
    assert writes["needs_clarification"] is True
    assert writes["clarification_reason"] == "insufficient_context"


def test_keyword_hits_alone_can_be_enough() -> None:
    unmeasured = [passage | {"cosine": None} for passage in PASSAGES]
    writes = judged("How do I descale the machine?", unmeasured)
    assert writes["needs_clarification"] is False
