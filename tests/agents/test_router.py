"""Router: which route a question takes."""

from typing import Any

import pytest

from agents.intake.router import choose

HISTORY = [{"role": "user", "text": "How do I add a site?", "time": "2026-11-21T12:00:00Z"}]


def routed(question: str, **memory: Any) -> dict[str, Any]:
    return choose(
        {"canonical_question": question, "enabled_routes": ["documentation", "fallback"]} | memory
    )


@pytest.mark.parametrize(
    "question",
    [
        "How do I exclude my own visits from the stats?",
        "What is the BGP hold timer on edge routers?",
        "Why does the import stop at 40 percent?",
        "Wie kündige ich mein Abonnement?",
        "pricing",
    ],
)
def test_questions_go_to_the_documents(question: str) -> None:
    assert routed(question)["route"] == "documentation"


@pytest.mark.parametrize("question", ["Who are you?", "Can I talk to a human being?", "Hi there"])
def test_small_talk_goes_to_fallback(question: str) -> None:
    assert routed(question)["route"] == "fallback"


def test_a_vague_first_question_asks_back_and_a_later_one_does_not() -> None:
    assert routed("How do I set it up?")["clarification_reason"] == "vague_request"
    assert "needs_clarification" not in routed("How do I set it up?", history=HISTORY)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How do I reset my password?", "simple_search"),
        ("What is the difference between the two plans?", "cross_doc"),
        ("Does our contract comply with the data protection regulation?", "compliance"),
        ("What are the risks of this agreement?", "risk"),
        ("How do I calibrate the flux capacitor?", "simple_search"),
    ],
)
def test_the_kind_of_question_is_told(question: str, kind: str) -> None:
    assert routed(question)["query_type"] == kind


def test_combining_is_more_complex_than_looking_up() -> None:
    simple = routed("What does the starter plan cost?")["complexity_score"]
    combined = routed("What is the difference between the two plans?")["complexity_score"]
    assert combined > simple
