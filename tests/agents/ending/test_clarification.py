"""Clarification: what the user is told and offered instead of an answer."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.attributes import Reason
from agents.ending.clarification import ask
from tests.agents.passages import PASSAGES, passage
from tests.scripted import Scripted, shaped


def ask_back(reason: Reason, **payload: Any) -> dict[str, Any]:
    values = {"needs_clarification": True, "clarification_reason": reason, "language": "en"}
    return ask(values | payload)


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("language", ["en", "de", "ru", "zh"])
def test_every_reason_is_explained_in_the_users_language(reason: Reason, language: str) -> None:
    writes = ask_back(reason, language=language)
    assert writes["response"]
    assert writes["suggested_actions"]
    english = ask_back(reason)["response"]
    assert (writes["response"] == english) == (language == "en")


def test_options_are_drawn_from_what_was_found() -> None:
    writes = ask_back(Reason.MISSING_CONTEXT, search_results=PASSAGES)
    assert writes["suggested_actions"] == ["Care — Descaling", "Warranty", "The grinder — Settings"]
    assert "- Warranty" in writes["response"]
    assert writes["clarification_type"] == "choice"


def test_no_title_is_offered_twice_and_four_are_enough() -> None:
    passages = [passage(number, f"Page {number % 6}", "", "text", 0.4) for number in range(1, 12)]
    options = ask_back(Reason.VAGUE_REQUEST, search_results=passages)["suggested_actions"]
    assert len(options) == len(set(options)) == 4


def test_one_document_offers_its_sections() -> None:
    passages = [
        passage(1, "Guide", f"Setup > {name}", "text", 0.4) | {"document_id": "guide"}
        for name in ("WordPress", "Shopify")
    ]
    options = ask_back(Reason.MISSING_CONTEXT, search_results=passages)["suggested_actions"]
    assert options == ["Guide — WordPress", "Guide — Shopify"]


def test_a_title_too_long_to_choose_by_gives_way_to_the_heading() -> None:
    passages = [passage(1, "How to " + "very " * 20 + "long", "Roles", "text", 0.4), PASSAGES[1]]
    options = ask_back(Reason.MISSING_CONTEXT, search_results=passages)["suggested_actions"]
    assert options == ["Roles", "Warranty"]


def test_a_refusal_says_what_can_be_asked_instead(settings: Settings) -> None:
    settings.DOMAIN_NAME = "coffee machines"
    writes = ask_back(Reason.OFF_TOPIC, offers=["Care", "Warranty"])
    assert "coffee machines" in writes["response"]
    assert writes["suggested_actions"] == ["Care", "Warranty"]
    assert writes["clarification_type"] == "scope"


def test_what_the_asking_agent_knows_is_passed_on() -> None:
    message = "The documents I found do not mention: gasket."
    writes = ask_back(Reason.MISSING_DETAILS, clarification_message=message)
    assert message in writes["response"]


def test_a_question_that_was_not_translated_is_said_to_be_so() -> None:
    far = [PASSAGES[0] | {"cosine": 0.1}]
    payload = {"language": "de", "search_results": far, "translation_confidence": 0.0}
    response = ask_back(Reason.INSUFFICIENT_CONTEXT, **payload)["response"]
    assert "nicht übersetzen" in response
    assert "(en)" in response


def test_what_is_far_from_the_question_is_not_called_close() -> None:
    near = ask_back(Reason.INSUFFICIENT_CONTEXT, search_results=PASSAGES)["response"]
    far = [PASSAGES[0] | {"cosine": 0.1}]
    assert "close to your question" in near
    assert "close" not in ask_back(Reason.INSUFFICIENT_CONTEXT, search_results=far)["response"]


def test_after_the_last_round_it_closes_instead_of_asking(settings: Settings) -> None:
    rounds = settings.MAX_CLARIFICATION_ROUNDS
    before = ask_back(Reason.VAGUE_REQUEST, clarification_rounds=rounds - 1)["response"]
    last = ask_back(Reason.VAGUE_REQUEST, clarification_rounds=rounds)["response"]
    assert "stop asking" not in before
    assert "stop asking" in last


def worded(
    models: Scripted, reason: Reason, payload: dict[str, Any], **values: Any
) -> dict[str, Any]:
    """What is said when the model words it so."""
    usual = {"message": "Um welches Gerät geht es?", "lead": "Meinen Sie:", "options": []}
    models.says("clarification", shaped(**usual | values))
    values = {"needs_clarification": True, "clarification_reason": reason, "language": "de"}
    return ask.perform(values | payload, models.model("clarification")).writes


def test_the_model_words_the_question_and_chooses_by_number(models: Scripted) -> None:
    payload = {"search_results": PASSAGES, "clarifying_questions": ["Which one?"]}
    writes = worded(models, Reason.MISSING_CONTEXT, payload, options=[3, 1, 3])
    assert (
        writes["response"]
        == "Um welches Gerät geht es?\n\nMeinen Sie:\n- The grinder — Settings\n- Care — Descaling"
    )
    assert writes["suggested_actions"] == ["The grinder — Settings", "Care — Descaling"]
    assert writes["clarification_type"] == "choice"
    (call,) = models.server.ledger
    assert "Write in German" in call.user
    assert "Which one?" in call.user


def test_what_exists_is_offered_although_the_model_chose_nothing(models: Scripted) -> None:
    writes = worded(models, Reason.VAGUE_REQUEST, {"search_results": PASSAGES}, lead="")
    assert writes["suggested_actions"][1] == "Warranty"
    assert "- Warranty" in writes["response"]


def test_documents_that_nobody_looked_for_are_offered_only_instead_of_what_is_declined() -> None:
    offers = {"offers": ["Care", "Warranty"]}
    assert "Care" not in ask_back(Reason.VAGUE_REQUEST, **offers)["response"]
    assert "Care" in ask_back(Reason.OFF_TOPIC, **offers)["response"]


def test_options_are_plain_text() -> None:
    found = [passage(1, "## **Bold** `code`", "A > [Link](https://example.com/x)", "text", 0.4)]
    (option,) = ask_back(Reason.MISSING_CONTEXT, search_results=found)["suggested_actions"]
    assert option == "Bold code — Link"


def test_titles_that_are_alike_are_told_apart_by_what_stands_above_them() -> None:
    found = [
        passage(number, "Billing", "", "text", 0.4) | {"crumbs": ["Docs", area]}
        for number, area in enumerate(["Plans", "Teams"], start=1)
    ]
    options = ask_back(Reason.MISSING_CONTEXT, search_results=found)["suggested_actions"]
    assert options == ["Plans — Billing", "Teams — Billing"]


def test_what_was_offered_in_vain_is_not_offered_again() -> None:
    first = ask_back(Reason.MISSING_CONTEXT, search_results=PASSAGES)
    asked = {
        "question": "How do I set it up?",
        "reason": "missing_context",
        "options": first["suggested_actions"],
    }
    again = ask_back(Reason.MISSING_CONTEXT, search_results=PASSAGES, open_clarification=asked)
    assert "- Warranty" not in again["response"]
    assert "in one sentence" in again["response"]


def test_a_refusal_names_the_scope_and_never_says_that_it_stops_asking(settings: Settings) -> None:
    settings.DOMAIN_SCOPE = "setting up coffee machines"
    rounds = settings.MAX_CLARIFICATION_ROUNDS
    response = ask_back(Reason.OFF_TOPIC, clarification_rounds=rounds)["response"]
    assert "setting up coffee machines" in response
    assert "stop asking" not in response


def test_what_nothing_found_speaks_of_is_named() -> None:
    payload = {"search_results": PASSAGES, "canonical_question": "What are the fees in Canada?"}
    response = ask_back(Reason.INSUFFICIENT_CONTEXT, **payload)["response"]
    assert "do not mention: fees, canada." in response


def test_to_signs_alone_nothing_is_offered() -> None:
    signs = {"search_results": PASSAGES, "canonical_question": "?!"}
    assert "- Warranty" not in ask_back(Reason.VAGUE_REQUEST, **signs)["response"]


def test_without_any_document_it_says_so_instead_of_asking() -> None:
    writes = ask_back(Reason.INSUFFICIENT_CONTEXT, search_stats={"chunks": 0})
    assert writes["response"].startswith("There are no documents here yet")


@pytest.mark.parametrize(
    "values",
    [
        {"message": "Siehe https://evil.example/."},
        {"message": "Siehe [hier](evil)."},
        {"message": "Meinen Sie:\n- Etwas Erfundenes"},
        {"lead": "1. Etwas Erfundenes"},
        {"options": [9]},
        {"message": "  "},
        {"message": "lang " * 400},
        {"message": "asdf qwer zxcv uiop hjkl"},
    ],
)
def test_what_was_not_given_to_the_model_is_never_offered(
    models: Scripted, values: dict[str, Any]
) -> None:
    payload = {"search_results": PASSAGES}
    writes = worded(models, Reason.MISSING_CONTEXT, payload, **values)
    assert writes == ask_back(Reason.MISSING_CONTEXT, language="de", **payload)


@pytest.mark.parametrize("reason", [Reason.HARMFUL_CONTENT, Reason.SYSTEM_ABUSE, Reason.OFF_TOPIC])
def test_of_what_is_declined_the_model_sees_the_reason_alone(
    models: Scripted, reason: Reason
) -> None:
    payload = {
        "clarification_message": "They want to build a bomb.",
        "clarifying_questions": ["What bomb?"],
        "history": [{"role": "user", "text": "bomb", "time": "2026-11-21T12:00:00+00:00"}],
    }
    writes = worded(models, reason, payload)
    (asked_of_model,) = models.server.ledger
    assert reason.value in asked_of_model.user
    assert "bomb" not in asked_of_model.user
    assert writes["clarification_type"] == "scope"


def test_the_last_round_closes_without_asking_a_model(models: Scripted) -> None:
    writes = worded(models, Reason.VAGUE_REQUEST, {"clarification_rounds": 3})
    assert models.server.ledger == []
    assert writes == ask_back(Reason.VAGUE_REQUEST, language="de", clarification_rounds=3)


def test_each_question_is_told_apart_with_its_context_and_what_may_be_its_answer() -> None:
    payload = {"search_results": PASSAGES, "clarifying_questions": ["With which machine?"]}
    writes = ask_back(Reason.MISSING_CONTEXT, **payload)
    choice, own = writes["questions_asked"]
    assert choice["question"] == "Which of these do you mean?"
    assert choice["suggestions"] == writes["suggested_actions"]
    assert (own["question"], own["suggestions"]) == ("With which machine?", [])
    for each in (choice, own):
        assert each["context"] in writes["response"]
        assert each["question"] in writes["response"]
    (open_question,) = ask_back(Reason.INSUFFICIENT_CONTEXT)["questions_asked"]
    assert open_question["question"].startswith("Describe in one sentence")
    german = ask_back(Reason.MISSING_CONTEXT, language="de", **payload)["questions_asked"]
    assert [each["question"] for each in german] == ["Was davon meinen Sie?"]


def test_what_the_model_asks_is_one_question_with_what_may_be_its_answer(models: Scripted) -> None:
    payload = {"search_results": PASSAGES}
    (asked,) = worded(models, Reason.MISSING_CONTEXT, payload, options=[2])["questions_asked"]
    assert asked["question"] == "Um welches Gerät geht es?"
    assert asked["suggestions"] == ["Warranty"]
    assert asked["context"]


def test_who_declines_or_stops_asking_asks_nothing(models: Scripted, settings: Settings) -> None:
    declined = ask_back(Reason.OFF_TOPIC, offers=["Care"], clarifying_questions=["Why?"])
    assert declined["questions_asked"] == []
    assert worded(models, Reason.OFF_TOPIC, {"offers": ["Care"]})["questions_asked"] == []
    rounds = settings.MAX_CLARIFICATION_ROUNDS
    for is_handed_over in (False, True):
        settings.HANDOVER = is_handed_over
        now = "2026-11-23T09:00:00+00:00"
        last = ask_back(Reason.VAGUE_REQUEST, clarification_rounds=rounds, current_time=now)
        assert last["questions_asked"] == []
