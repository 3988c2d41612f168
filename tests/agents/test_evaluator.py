"""Evaluator: whether passages are enough, and what they lack."""

from typing import Any

from agents.documentation.evaluator import evaluate
from tests.agents.passages import PASSAGES
from tests.scripted import Said, Scripted, shaped


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


def test_the_model_says_what_is_missing_and_what_to_search_for(models: Scripted) -> None:
    models.says(
        "evaluator",
        shaped(sufficient=False, missing="the torque", refined_query="gasket torque", confidence=1),
    )
    payload = {"canonical_question": "Which torque?", "search_results": PASSAGES}
    done = evaluate.perform(payload, models.model("evaluator"))
    assert done.mode == "model"
    assert done.writes["limitations"] == ["the torque"]
    assert done.writes["refined_query"] == "gasket torque"
    (asked,) = models.server.ledger
    assert PASSAGES[0]["text"] in asked.user


def test_without_a_usable_reply_the_terms_decide_and_it_says_why(models: Scripted) -> None:
    models.says("evaluator", Said("I cannot say."))
    payload = {"canonical_question": "How do I descale it?", "search_results": PASSAGES}
    done = evaluate.perform(payload, models.model("evaluator"))
    assert done.mode == "extractive"
    assert done.degraded.startswith("malformed")
    assert done.writes == evaluate(payload)
    assert len(models.server.ledger) == 2
