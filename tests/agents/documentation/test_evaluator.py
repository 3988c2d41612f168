"""Evaluator: whether passages are enough, and what they lack."""

from typing import Any

from agents.documentation.evaluator import evaluate
from tests.agents.passages import PASSAGES
from tests.scripted import Response, Scripted, shaped


def verdict(**values: Any) -> Response:
    usual = {"sufficient": True, "usable": True, "missing": "", "refined_query": ""}
    return shaped(**usual | {"confidence": 1} | values)


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
    assert writes["limitations"] == ["gasket"]
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
        verdict(sufficient=False, missing="the torque", refined_query="gasket torque"),
    )
    payload = {"canonical_question": "Which torque?", "search_results": PASSAGES}
    done = evaluate.perform(payload, models.model("evaluator"))
    assert done.mode == "model"
    assert done.writes["limitations"] == ["the torque"]
    assert done.writes["refined_query"] == "gasket torque"
    (call,) = models.server.ledger
    assert PASSAGES[0]["text"] in call.user


def test_the_model_is_told_which_languages_to_search_in(models: Scripted) -> None:
    models.says("evaluator", verdict())
    german = [passage | {"language": "de-ch"} for passage in PASSAGES]
    payload = {"canonical_question": "Which?", "search_results": [PASSAGES[0], *german]}
    evaluate.perform(payload, models.model("evaluator"))
    (call,) = models.server.ledger
    assert "The passages are written in: German, English\n" in call.user


def test_the_model_is_told_the_wishes_and_what_was_searched_for_in_vain(models: Scripted) -> None:
    models.says("evaluator", verdict())
    payload = {
        "canonical_question": "Which?",
        "search_results": PASSAGES,
        "response_notes": ["with an example"],
        "tried_searches": [{"query": "torque", "missing": "the unit"}, {"query": "torque Nm"}],
    }
    evaluate.perform(payload, models.model("evaluator"))
    shown = models.server.ledger[0].user
    assert all(text in shown for text in ("with an example", "torque\nthe unit", "torque Nm"))


def test_the_model_is_shown_the_three_best_passages(models: Scripted) -> None:
    models.says("evaluator", verdict())
    results = [PASSAGES[0] | {"text": f"It is number {number}."} for number in range(1, 5)]
    evaluate.perform(
        {"canonical_question": "?", "search_results": results}, models.model("evaluator")
    )
    shown = models.server.ledger[0].user
    assert [number for number in range(1, 5) if f"number {number}." in shown] == [1, 2, 3]


def test_what_is_missing_is_said_before_the_verdict(models: Scripted) -> None:
    models.says("evaluator", verdict())
    payload = {"canonical_question": "Which?", "search_results": PASSAGES}
    evaluate.perform(payload, models.model("evaluator"))
    schema = models.server.ledger[0].body["response_format"]["json_schema"]["schema"]
    properties = list(schema["properties"])
    assert properties.index("missing") < properties.index("usable") < properties.index("sufficient")


def test_search_that_knows_its_threshold_is_believed_rather_than_a_cosine() -> None:
    far = [passage | {"cosine": 0.1} for passage in PASSAGES]
    payload = {"canonical_question": "Which torque?", "search_results": far}
    sure = evaluate(payload | {"search_stats": {"confidence": 0.4, "threshold": 0.3}})
    assert sure["evaluation"]["sufficient"] is True
    unsure = evaluate(payload | {"search_stats": {"confidence": 0.1, "threshold": 0.3}})
    assert unsure["evaluation"]["sufficient"] is False


def test_without_passages_the_user_is_asked() -> None:
    writes = evaluate({"canonical_question": "Which torque?", "search_results": []})
    assert writes["needs_clarification"] is True


def test_passages_the_model_cannot_use_are_asked_about(models: Scripted) -> None:
    models.says("evaluator", verdict(sufficient=False, usable=False))
    payload = {"canonical_question": "Which torque has it?", "search_results": PASSAGES}
    writes = evaluate.perform(payload, models.model("evaluator")).writes
    assert writes["needs_clarification"] is True
    assert writes["clarification_reason"] == "insufficient_context"
    assert writes["refined_query"] == "torque"


def test_what_is_only_missing_at_the_side_goes_along_as_a_limitation(models: Scripted) -> None:
    models.says("evaluator", verdict(missing="whether yearly payment is possible"))
    payload = {"canonical_question": "What does it cost?", "search_results": PASSAGES}
    writes = evaluate.perform(payload, models.model("evaluator")).writes
    assert writes["evaluation"]["sufficient"] is True
    assert writes["limitations"] == ["whether yearly payment is possible"]
    assert writes["refined_query"] == ""
    assert writes["needs_clarification"] is False


def test_without_a_usable_reply_the_terms_decide_and_it_says_why(models: Scripted) -> None:
    models.says("evaluator", Response("I cannot say."))
    payload = {"canonical_question": "How do I descale it?", "search_results": PASSAGES}
    done = evaluate.perform(payload, models.model("evaluator"))
    assert done.mode == "extractive"
    assert done.degraded.startswith("malformed")
    assert done.writes == evaluate(payload)
    assert len(models.server.ledger) == 2
