"""Quality: whether cited sentences are in their passages and the answer is to the point."""

from typing import Any

import pytest

from agents.documentation.augmentation import assemble
from agents.documentation.quality import judge
from agents.documentation.response import answer
from agents.words import LOCALES, Phrase
from tests.agents.documentation.test_response_by_model import ShownTokens
from tests.agents.passages import PASSAGES
from tests.scripted import Response, Scripted, shaped

QUESTION = "How do I descale the machine?"


def draft(question: str = QUESTION) -> dict[str, Any]:
    material = {"canonical_question": question, "language": "en", "search_results": PASSAGES}
    payload = material | assemble(material)
    return payload | answer(payload)


def test_an_extractive_answer_to_the_point_is_approved() -> None:
    writes = judge(draft())
    assert writes["quality_decision"] == "approve"
    assert writes["validation_result"]["unsupported"] == 0


def test_the_rows_of_a_table_that_is_quoted_are_cited() -> None:
    rows = (
        "- setting: `QUALITY_MODEL`; default: `GEN_MODEL`\n"
        "- setting: `ROUTER_MODEL`; default: `none`"
    )
    table = (
        "| setting | default |\n| --- | --- |\n"
        "| `QUALITY_MODEL` | `GEN_MODEL` |\n| `ROUTER_MODEL` | `none` |\n\n[C1]"
    )
    material = {
        "canonical_question": "What is QUALITY_MODEL by default?",
        "language": "en",
        "search_results": [PASSAGES[0] | {"text": rows}],
    }
    (reference,) = assemble(material)["source_references"]
    quoted = {"response": table, "answer_form": "quoted", "generation_confidence": 0.9}
    cited = {name: value for name, value in reference.items() if name != "text"}
    writes = judge(
        material
        | {"source_references": [reference]}
        | quoted
        | {"citations_used": [cited | {"quote": rows, "citation_status": "verified"}]}
    )
    assert (writes["quality_decision"], writes["validation_result"]["uncited"]) == ("approve", 0)


def test_the_closest_place_goes_out_with_reservations() -> None:
    writes = judge(draft() | {"answer_form": "closest"})
    assert writes["quality_decision"] == "approve_with_reservations"


def test_a_sentence_no_passage_holds_sends_the_answer_back() -> None:
    payload = draft()
    invented = "Pour 250 ml of vinegar over the heating coil."
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
    beside = {"canonical_question": "Which steam locomotives run on Sundays?"}
    writes = judge(draft() | beside | {"answer_form": "written"})
    assert writes["quality_decision"] == "research"
    assert "locomotives" in writes["refined_query"]


def test_an_answer_without_citations_scores_nothing() -> None:
    writes = judge(draft() | {"citations_used": [], "response": "Trust me."})
    assert writes["quality_score"] == 0


def judged(
    models: Scripted, payload: dict[str, Any], tokens: ShownTokens | None = None, **values: Any
) -> dict[str, Any]:
    """What becomes of a draft when the model says this of it."""
    usual = {"analysis": "", "unsupported": [], "score": 0.9, "decision": "approve"}
    models.says("quality", shaped(**usual | {"refined_query": "", "missing": ""} | values))
    return judge.perform(payload, models.model("quality", tokens=tokens or ShownTokens())).writes


def test_the_model_sees_each_statement_with_what_the_check_found(models: Scripted) -> None:
    payload = draft()
    payload["response"] = "Heat the tank to boiling first.\n\n" + payload["response"]
    writes = judged(models, payload)
    assert writes["quality_decision"] == "approve"
    assert writes["quality_score"] == 0.9
    (call,) = models.server.ledger
    assert 'number="1" markers="C1" status="verified"' in call.user
    assert 'status="uncited">\nHeat the tank to boiling first.' in call.user
    assert "Sources:" not in call.user


def test_no_model_can_approve_what_no_passage_says(models: Scripted) -> None:
    payload = draft()
    invented = "Pour 250 ml of vinegar over the heating coil."
    payload["citations_used"][0] |= {"quote": invented, "citation_status": "verified"}
    writes = judged(models, payload, score=1)
    assert writes["quality_decision"] == "regenerate"
    assert invented in writes["quality_analysis"]
    unknown = draft() | {"response": "It makes tea. [C9]"}
    assert judged(models, unknown, score=1)["quality_decision"] == "regenerate"


def test_what_an_approving_model_found_right_is_reviewed(models: Scripted) -> None:
    said = "Rinse the tank twice [C1]. Every three months it needs descaling [C1]."
    payload = by_model(models, said)
    assert [each["citation_status"] for each in payload["citations_used"]] == ["verified", "weak"]
    writes = judged(models, payload)
    statuses = [each["citation_status"] for each in writes["citations_used"]]
    assert statuses == ["verified", "reviewed"]
    counts = writes["validation_result"]
    assert (counts["verified"], counts["reviewed"], counts["weak"]) == (1, 1, 0)
    doubted = judged(models, payload, score=0.4)
    assert "citations_used" not in doubted


def test_what_is_verified_is_looked_up_again(models: Scripted) -> None:
    payload = draft()
    payload["citations_used"][0] |= {
        "quote": "Pour vinegar into it.",
        "citation_status": "verified",
    }
    assert judge(payload)["validation_result"]["weak"] == 1


@pytest.mark.parametrize("language", ["en", *LOCALES])
def test_that_documents_leave_something_open_needs_no_source(language: str) -> None:
    payload = draft() | {"language": language}
    missing = Phrase.NOT_COVERED.in_language(language, missing="what the descaler costs in shops")
    body, gap, sources = payload["response"].rpartition("\n\nSources:")
    assert gap
    payload["response"] = f"{body}\n\n{missing}{gap}{sources}"
    assert judge(payload)["validation_result"]["uncited"] == 0


def test_an_approval_below_the_threshold_is_none(models: Scripted) -> None:
    low = judged(models, draft(), score=0.4)
    assert low["quality_decision"] == "regenerate"
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


def test_nobody_is_asked_where_search_is_sure(models: Scripted) -> None:
    said = "Rinse the tank twice [C1]. Descaling takes about twenty minutes [C1]."
    sure = by_model(models, said) | {"search_stats": {"certainty": 0.8}}
    writes = judged(models, sure, decision="clarify", score=0.3, missing="Which machine?")
    assert writes["needs_clarification"] is False
    assert writes["quality_decision"] == "approve_with_reservations"
    wrong = judged(models, sure, decision="clarify", unsupported=[1], missing="Which machine?")
    assert wrong["needs_clarification"] is False
    assert wrong["quality_decision"] == "regenerate"
    unsure = sure | {"search_stats": {"certainty": 0.3}}
    asked = judged(models, unsure, decision="clarify", unsupported=[1], missing="Which machine?")
    assert asked["needs_clarification"] is True


def test_a_verdict_that_all_is_wrong_is_none_where_all_stands_word_for_word(
    models: Scripted,
) -> None:
    payload = by_model(
        models, "Rinse the tank twice [C1]. Descaling takes about twenty minutes [C1]."
    )
    writes = judged(models, payload, unsupported=[1, 2], score=0.1)
    assert writes["quality_decision"] == "approve"


VERBATIM = (
    "Rinse the tank twice [C1]. Descaling takes about twenty minutes [C1]. "
    "The machine needs descaling every three months [C1]."
)


def test_a_verdict_that_most_is_wrong_is_believed_once_of_what_stands_word_for_word(
    models: Scripted,
) -> None:
    payload = by_model(models, VERBATIM)
    first = judged(models, payload, unsupported=[1, 2], score=0.1)
    assert first["quality_decision"] == "regenerate"
    assert "Rinse the tank twice." in first["quality_analysis"]
    assert "response" not in first
    again = judged(models, payload | {"quality_returns": 1}, unsupported=[1, 2], score=0.1)
    assert (again["quality_decision"], again["answer_worth"]) == ("approve", 1.0)


def test_a_verdict_that_most_is_wrong_is_believed_of_other_words(models: Scripted) -> None:
    payload = by_model(models, GERMAN, language="de") | {"quality_returns": 1}
    writes = judged(models, payload, unsupported=[1, 2], score=0.1)
    assert writes["quality_decision"] == "regenerate"
    assert "Deckel" not in writes["response"]


@pytest.mark.parametrize("by_rules", [True, False])
def test_an_answer_that_was_cut_goes_out_with_reservations(
    models: Scripted, by_rules: bool
) -> None:
    payload = by_model(models, VERBATIM) | {"generation_error": "cut"}
    writes = judge(payload) if by_rules else judged(models, payload)
    assert writes["quality_decision"] == "approve_with_reservations"


def test_an_answer_is_worth_less_that_strays_repeats_itself_or_lost_statements(
    models: Scripted,
) -> None:
    worth = judge(by_model(models, VERBATIM))["answer_worth"]
    for text in (
        f"{VERBATIM} {VERBATIM} {VERBATIM}",
        "Rinse the tank twice [C1]. The grinder has five settings of its own [C3].",
        f"{VERBATIM} Add 3 spoons of salt [C1]. Wait for 90 minutes [C1].",
        f"{VERBATIM} It was loved by the people of Cornwall.",
    ):
        assert judge(by_model(models, text))["answer_worth"] < worth, text
    half = by_model(models, f"{VERBATIM} Das steht in keinem Text [C1].", language="de")
    approving = judged(models, half, unsupported=[4])
    assert approving["answer_worth"] == pytest.approx(worth)


def test_the_model_is_given_the_passages_that_are_cited(models: Scripted) -> None:
    payload = by_model(models, "Descaling takes about twenty minutes [C1].")
    assert len(payload["source_references"]) > 1
    judged(models, payload)
    call = models.server.ledger[-1]
    assert call.user.count("<passage-") == 1


def test_what_response_took_out_is_shown_and_counted(models: Scripted) -> None:
    noted = {"removed": ["Add salt to the tank."], "removed_markers": ["C7"], "uncited": 0}
    writes = judged(models, draft() | {"validation_result": noted})
    assert writes["validation_result"]["removed"] == ["Add salt to the tank."]
    assert writes["validation_result"]["removed_markers"] == ["C7"]
    assert "Add salt to the tank." in models.server.ledger[0].user


def test_without_a_usable_verdict_support_and_relevance_decide(models: Scripted) -> None:
    models.says("quality", Response("fine by me"))
    done = judge.perform(draft(), models.model("quality"))
    assert done.mode == "extractive"
    assert done.degraded.startswith("malformed")
    assert done.writes == judge(draft())


def by_model(models: Scripted, text: str, **payload: Any) -> dict[str, Any]:
    """A draft that a model wrote so."""
    material = {
        "canonical_question": QUESTION,
        "language": "en",
        "search_results": PASSAGES,
    } | payload
    prepared = material | assemble(material)
    models.says("response", Response(text))
    return prepared | answer.perform(prepared, models.model("response")).writes


GERMAN = (
    "Drücken Sie die Taste Clean fünf Sekunden [C1]. Öffnen Sie den Deckel [C1]. "
    "Spülen Sie den Tank zweimal [C1]."
)
TURNED = "Öffnen Sie den Deckel."


def test_what_the_model_finds_in_no_passage_goes_and_the_answer_is_sent_back(
    models: Scripted,
) -> None:
    tokens = ShownTokens()
    payload = by_model(models, GERMAN, language="de")
    writes = judged(models, payload, tokens, unsupported=[2], analysis="The lid is not in it.")
    assert writes["quality_decision"] == "regenerate"
    assert writes["quality_analysis"] == f"The lid is not in it.\n{TURNED}"
    assert "Deckel" not in writes["response"]
    assert "Spülen Sie den Tank zweimal [C1]." in writes["response"]
    assert "Quellen:" in writes["response"]
    assert [each["quote"] for each in writes["citations_used"]] == [
        "Drücken Sie die Taste Clean fünf Sekunden.",
        "Spülen Sie den Tank zweimal.",
    ]
    counts = writes["validation_result"]
    assert (counts["unsupported"], counts["weak"], counts["removed"]) == (1, 2, [TURNED])
    assert tokens.text == writes["response"]


def test_what_stands_word_for_word_and_is_called_wrong_twice_goes_out_with_reservations(
    models: Scripted,
) -> None:
    payload = by_model(models, VERBATIM)
    first = judged(models, payload, unsupported=[1, 7])
    assert first["quality_decision"] == "regenerate"
    assert "Rinse the tank twice." in first["quality_analysis"]
    assert "response" not in first
    again = judged(models, payload | {"quality_returns": 1}, unsupported=[1, 7])
    assert again["quality_decision"] == "approve_with_reservations"
    assert "response" not in again


def test_of_an_answer_that_lost_much_the_place_is_quoted_at_last_where_search_is_surer(
    models: Scripted,
) -> None:
    torn = by_model(models, GERMAN, language="de") | {"quality_returns": 2}
    sure = judged(models, torn | {"search_stats": {"certainty": 0.95}}, unsupported=[1])
    assert sure["answer_form"] == "quoted"
    assert sure["quality_decision"] == "approve_with_reservations"
    assert {each["citation_status"] for each in sure["citations_used"]} == {"verified"}
    unsure = judged(models, torn | {"search_stats": {"certainty": 0.2}}, unsupported=[1])
    assert unsure["quality_decision"] == "regenerate"
    assert unsure["citations_used"]
    assert "answer_form" not in unsure


def test_an_answer_that_lost_one_of_many_statements_goes_out_without_it(models: Scripted) -> None:
    payload = by_model(models, f"{VERBATIM} Rinse it often [C1]. Wipe the lid too [C1].")
    sent = payload | {"quality_returns": 2, "search_stats": {"certainty": 0.95}}
    writes = judged(models, sent, unsupported=[5])
    assert writes["quality_decision"] == "regenerate"
    assert "Wipe" not in writes["response"]
    assert "Rinse it often" in writes["response"]


def test_of_an_answer_of_which_nothing_cited_is_left_at_last_the_place_is_quoted(
    models: Scripted,
) -> None:
    payload = by_model(models, "Öffnen Sie den Deckel [C1].", language="de")
    first = judged(models, payload, unsupported=[1])
    assert (first["quality_decision"], first["quality_score"]) == ("regenerate", 0)
    same = {"quality_returns": 1, "best_answer": {"response": payload["response"]}}
    repeated = judged(models, payload | same, unsupported=[1])
    assert repeated["quality_decision"] == "approve_with_reservations"
    last = judged(models, payload | {"quality_returns": 2}, unsupported=[1])
    assert last["quality_decision"] == "approve_with_reservations"
    assert "ffnen" not in last["response"]
    assert {each["citation_status"] for each in last["citations_used"]} == {"verified"}
    hopeless = payload | {"quality_returns": 2, "search_stats": {"certainty": 0.01}}
    asked = judged(models, hopeless, unsupported=[1])
    assert asked["clarification_reason"] == "insufficient_context"
    before = {"quality_returns": 2, "best_answer": {"response": "x", "answer_worth": 0.4}}
    assert judged(models, payload | before, unsupported=[1])["needs_clarification"] is False


def test_the_model_knows_the_wishes_and_what_was_not_found(models: Scripted) -> None:
    judged(models, draft() | {"response_notes": ["2 lines"], "limitations": ["the price"]})
    (call,) = models.server.ledger
    assert ">\n2 lines\n<" in call.user
    assert ">\nthe price\n<" in call.user


def test_what_is_sent_back_without_a_reason_names_the_statements_in_doubt(
    models: Scripted,
) -> None:
    payload = by_model(models, GERMAN, language="de")
    assert TURNED in judged(models, payload, decision="regenerate", score=0.4)["quality_analysis"]


def test_by_rules_an_uncited_statement_counts_against_an_answer() -> None:
    payload = draft() | {"answer_form": "written"}
    payload["response"] = f"It was loved by the people of Cornwall.\n\n{payload['response']}"
    assert (
        judge(payload)["quality_score"]
        < judge(draft() | {"answer_form": "written"})["quality_score"]
    )
    payload["response"] = f"It was also built by the Smith brothers. {payload['response']}"
    payload["citations_used"] = payload["citations_used"][:1]
    writes = judge(payload)
    assert writes["quality_decision"] == "regenerate"
    assert "It was loved by the people of Cornwall." in writes["quality_analysis"]


def test_by_rules_an_answer_in_another_language_goes_out_with_reservations(
    models: Scripted,
) -> None:
    payload = by_model(models, "Spülen Sie den Tank zweimal [C1].", language="de")
    assert judge(payload)["quality_decision"] == "approve_with_reservations"
