"""The seven scenarios with language models, end to end: real workers, a scripted model server."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from agents.bench.modelserver import Asked, Said
from agents.bench.replies import cited, data
from tests.e2e.conftest import Docent, by_models, furnished
from tests.sensible import Sensible

INTAKE = {"guardrails", "router", "search"}


@pytest.fixture(scope="module")
def docent(server: Sensible, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    """Docent with a model for every role, both routes open, and caches off."""
    log = tmp_path_factory.mktemp("thinking") / "up.log"
    with furnished(13, log, **by_models(server), ROUTES="documentation,fallback") as started:
        yield started


@pytest.fixture(autouse=True)
def usual(server: Sensible) -> None:
    """Every test begins with sensible replies and an empty ledger."""
    server.reset()


def session() -> dict[str, str]:
    return {"session_id": f"s-{uuid4()}"}


def overlapping(server: Sensible) -> set[frozenset[str]]:
    """The pairs of prompts whose calls were under way at the same time."""
    calls = [asked for asked in server.server.ledger if asked.ended]
    return {
        frozenset({a.prompt, b.prompt})
        for a in calls
        for b in calls
        if a is not b and a.began < (b.ended or 0) and b.began < (a.ended or 0)
    }


def test_happy_path_asks_each_role_once_and_cites(docent: Docent, server: Sensible) -> None:
    server.seconds = 0.5
    reply = docent.ask("How do I descale the heater?")
    assert reply["status"] == "completed"
    assert reply["mode"] == "model"
    assert reply["citations"]
    assert {c["citation_status"] for c in reply["citations"]} == {"verified"}
    called = server.server.prompts()
    assert called[:2] == ["translation", "essence"]
    assert set(called[2:4]) == {"guardrails", "router"}
    assert called[-2:] == ["response", "quality"]
    assert len(called) == len(set(called))
    assert frozenset({"guardrails", "router"}) in overlapping(server)
    assert reply["usage"]["model_calls"] == len(called)


def test_a_russian_question_is_answered_in_russian_from_english_documents(
    docent: Docent, server: Sensible
) -> None:
    server.says("translation", {"text_eng": "How do I descale the heater?"})
    server.says("response", lambda asked: Said(f"Наполните бак водой и кислотой. {marker(asked)}"))
    reply = docent.ask("Как удалить накипь с нагревателя?")
    assert reply["status"] == "completed"
    assert reply["language"] == "ru"
    assert "Наполните бак" in reply["reply"]
    assert "Источники" in reply["reply"]
    assert any("Russian" in asked.system + asked.user for asked in asked_of(server, "response"))


def marker(asked: Asked) -> str:
    return cited(asked).rpartition(" ")[2]


def asked_of(server: Sensible, prompt: str) -> list[Asked]:
    return [asked for asked in server.server.ledger if asked.prompt == prompt]


def test_a_vague_question_is_clarified_with_real_options_and_then_answered(
    docent: Docent, server: Sensible
) -> None:
    talk = session()
    vague = {"vagueness_score": 0.9, "needs_clarification": True, "asks": True}
    server.says("router", vague | {"clarifying_questions": ["Set up what?"]})
    asked = docent.ask("How do I set it up?", **talk)
    assert asked["status"] == "awaiting_user"
    assert any("WordPress" in option for option in asked["suggested_actions"])
    assert "response" not in server.server.prompts()
    server.reset()
    whole = "How do I set up the WordPress plugin of the Teapot?"
    server.says(
        "essence",
        {
            "canonical_question": whole,
            "context_type": "clarification",
            "clarification_result": "search_again",
        },
    )
    answered = docent.ask("the WordPress plugin", **talk)
    assert answered["status"] == "completed"
    assert answered["state_excerpt"]["canonical_question"] == whole
    assert "How do I set it up?" in data(asked_of(server, "essence")[0], "open_question") or (
        "How do I set it up?" in asked_of(server, "essence")[0].user
    )


def test_a_weather_question_is_declined_politely(docent: Docent, server: Sensible) -> None:
    server.says(
        "guardrails",
        {
            "passed": False,
            "guardrails_passed": False,
            "within_scope": False,
            "category": "off_topic",
        },
    )
    reply = docent.ask("What is the weather in Paris today?")
    assert reply["status"] == "awaiting_user"
    assert reply["state_excerpt"]["clarification_reason"] == "off_topic"
    assert "response" not in server.server.prompts()
    assert reply["suggested_actions"]


def test_an_answer_that_quality_sends_back_is_written_again(
    docent: Docent, server: Sensible
) -> None:
    again = {"decision": "regenerate", "quality_decision": "regenerate", "score": 0.3}
    server.says("quality", again | {"analysis": "It leaves out how often."}, {})
    reply = docent.ask("How do I descale the heater?")
    assert reply["status"] == "completed"
    assert server.server.prompts().count("response") == 2
    assert "It leaves out how often." in asked_of(server, "response")[1].user
    assert reply["state_excerpt"]["quality_returns"] == 1


def test_after_several_rounds_of_clarification_it_stops_asking(
    docent: Docent, server: Sensible
) -> None:
    talk = session()
    vague: dict[str, Any] = {"vagueness_score": 0.9, "needs_clarification": True, "asks": True}
    server.says("router", vague | {"clarifying_questions": ["What is it?"]})
    asked = [docent.ask(text, **talk) for text in ("Fix it", "that thing", "you know", "the thing")]
    assert [each["status"] for each in asked] == ["awaiting_user"] * 3 + ["completed"]


def test_who_leaves_a_clarification_is_let_go(docent: Docent, server: Sensible) -> None:
    talk = session()
    vague: dict[str, Any] = {"vagueness_score": 0.9, "needs_clarification": True, "asks": True}
    server.says("router", vague | {"clarifying_questions": ["Set up what?"]})
    assert docent.ask("How do I set it up?", **talk)["status"] == "awaiting_user"
    server.says("essence", {"context_type": "clarification", "clarification_result": "exit"})
    left = docent.ask("forget about it, bye", **talk)
    assert left["status"] == "completed"
    assert "Goodbye" in left["reply"]


def test_three_turns_resolve_that_and_keep_the_wish_of_two_lines(
    docent: Docent, server: Sensible
) -> None:
    talk = session()
    docent.ask("How do I descale the heater?", **talk)
    server.says("essence", {"canonical_question": "How is the heater descaled, with an example?"})
    server.says(
        "evaluator",
        {"sufficient": False, "missing": "an example", "refined_query": "descaling example"},
    )
    second = docent.ask("Explain with an example.", **talk)
    assert second["status"] == "completed"
    essence = asked_of(server, "essence")[-1]
    assert "How do I descale the heater?" in essence.user
    server.reset()
    server.says(
        "essence",
        {
            "canonical_question": "How is the heater of the Teapot descaled?",
            "context_type": "follow_up",
            "response_notes": ["2 lines"],
        },
    )
    third = docent.ask("Now summarize that in 2 lines.", **talk)
    assert third["status"] == "completed"
    assert "2 lines" in asked_of(server, "response")[0].user
    assert "Explain with an example." in asked_of(server, "essence")[0].user
