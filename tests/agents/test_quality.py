"""Quality: whether cited sentences are in their passages and the answer is to the point."""

from typing import Any

from agents.documentation.augmentation import assemble
from agents.documentation.quality import judge
from agents.documentation.response import answer
from tests.agents.passages import PASSAGES
from tests.scripted import Said, Scripted, shaped

QUESTION = "How do I descale the machine?"


def draft(question: str = QUESTION) -> dict[str, Any]:
    given = {"canonical_question": question, "language": "en", "search_results": PASSAGES}
    payload = given | assemble(given)
    return payload | answer(payload)


def test_an_extractive_answer_to_the_point_is_approved() -> None:
    writes = judge(draft())
    assert writes["quality_decision"] == "approve"
    assert writes["quality_score"] >= 0.7
    assert writes["validation_result"]["unsupported"] == 0


def test_a_sentence_no_passage_holds_sends_the_answer_back() -> None:
    payload = draft()
    invented = "Pour vinegar over the heating coil."
    payload["citations_used"][0] |= {"quote": invented, "citation_status": "verified"}
    writes = judge(payload)
    assert writes["quality_decision"] == "regenerate"
    assert invented in writes["quality_analysis"]


def test_a_marker_nobody_gave_sends_the_answer_back() -> None:
    payload = draft()
    payload["response"] += " It also makes tea. [C9]"
    writes = judge(payload)
    assert writes["quality_decision"] == "regenerate"
    assert writes["validation_result"]["unknown_markers"] == ["C9"]


def test_an_answer_beside_the_point_is_searched_again() -> None:
    payload = draft() | {"canonical_question": "Which steam locomotives run on Sundays?"}
    writes = judge(payload)
    assert writes["quality_decision"] == "research"
    assert "locomotives" in writes["refined_query"]


def test_an_answer_without_citations_scores_nothing() -> None:
    writes = judge(draft() | {"citations_used": [], "response": "Trust me."})
    assert writes["quality_score"] == 0


def judged(models: Scripted, payload: dict[str, Any], **values: Any) -> dict[str, Any]:
    """What becomes of a draft when the model says this of it."""
    usual = {"analysis": "", "score": 0.9, "decision": "approve", "refined_query": ""}
    models.says("quality", shaped(**usual | {"missing": ""} | values))
    return judge.perform(payload, models.model("quality")).writes


def test_the_model_sees_each_statement_with_what_the_check_found(models: Scripted) -> None:
    payload = draft()
    payload["response"] = "Heat the tank to boiling first.\n\n" + payload["response"]
    writes = judged(models, payload)
    assert writes["quality_decision"] == "approve"
    assert writes["quality_score"] == 0.9
    (asked,) = models.server.ledger
    assert 'markers="C1" status="verified"' in asked.user
    assert 'status="uncited">\nHeat the tank to boiling first.' in asked.user
    assert "Sources:" not in asked.user


def test_no_model_can_approve_what_no_passage_says(models: Scripted) -> None:
    payload = draft()
    invented = "Pour vinegar over the heating coil."
    payload["citations_used"][0] |= {"quote": invented, "citation_status": "verified"}
    writes = judged(models, payload, score=1)
    assert writes["quality_decision"] == "regenerate"
    assert invented in writes["quality_analysis"]
    unknown = draft() | {"response": "It makes tea. [C9]"}
    assert judged(models, unknown, score=1)["quality_decision"] == "regenerate"


def test_an_approval_below_the_threshold_is_none(models: Scripted) -> None:
    low = judged(models, draft(), score=0.4)
    assert low["quality_decision"] == "regenerate"
    assert low["quality_analysis"]
    searched = judged(models, draft(), score=0.4, refined_query="descaling interval")
    assert searched["quality_decision"] == "research"
    assert searched["refined_query"] == "descaling interval"


def test_research_without_a_query_searches_for_the_question(models: Scripted) -> None:
    writes = judged(models, draft(), decision="research", score=0.3)
    assert writes["refined_query"] == "descale machine"


def test_what_only_the_user_knows_is_asked_for(models: Scripted) -> None:
    writes = judged(models, draft(), decision="clarify", score=0.3, missing="Which machine?")
    assert writes["needs_clarification"] is True
    assert writes["clarification_reason"] == "quality_insufficient"
    assert writes["clarification_message"] == "Which machine?"


def test_what_response_took_out_is_shown_and_counted(models: Scripted) -> None:
    noted = {"removed": ["Add salt to the tank."], "removed_markers": ["C7"], "uncited": 0}
    writes = judged(models, draft() | {"validation_result": noted})
    assert writes["validation_result"]["removed"] == ["Add salt to the tank."]
    assert writes["validation_result"]["removed_markers"] == ["C7"]
    assert "Add salt to the tank." in models.server.ledger[0].user


def test_without_a_usable_verdict_support_and_relevance_decide(models: Scripted) -> None:
    models.says("quality", Said("fine by me"))
    done = judge.perform(draft(), models.model("quality"))
    assert done.mode == "extractive"
    assert done.degraded.startswith("malformed")
    assert done.writes == judge(draft())
