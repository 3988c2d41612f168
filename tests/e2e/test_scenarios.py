"""The seven scenarios with language models, end to end: real workers, a scripted model server.

For each turn the calls of models are listed as they have to come, one after another; those that
are joined by `+` run at the same time, as does a search, which asks nobody.
"""

import json
import logging
import threading
import time
from typing import Any
from uuid import uuid4

import pytest

from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_replies import cited, data, sensible
from tests.e2e.conftest import CHECKOUT, Docent
from tests.e2e.test_crashes import endings
from tests.sensible import Sensible

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 60.0
ASKING = {"guardrails", "router"}  # beside a search
# One plain question in English needs no model to be understood; a message after others does.
INTAKE = ["guardrails + router + search"]
ANSWERED = [*INTAKE, "response", "quality"]
PLAINLY = "Where does the water go when I press the button?"


@pytest.fixture
def docent(thinker: Docent) -> Docent:
    """Docent with a model for every role, both routes open, and caches off."""
    return thinker


@pytest.fixture(autouse=True)
def usual(server: Sensible) -> None:
    """Every test begins with sensible replies and an empty ledger."""
    server.reset()
    server.says("clarification", {"message": "What is it about?"})


def session() -> dict[str, str]:
    return {"session_id": f"s-{uuid4()}"}


def steps(docent: Docent, turn: str) -> list[dict[str, Any]]:
    """Return the steps of a turn, as its trace has them."""
    found: list[dict[str, Any]] = docent.call("GET", f"/api/turns/{turn}/trace/").body["steps"]
    return found


def calls(docent: Docent, reply: dict[str, Any]) -> list[str]:
    """Return the calls of a turn in their order, those of one batch together."""
    together: dict[int, list[str]] = {}
    for step in steps(docent, reply["turn_id"]):
        asked = [call["prompt"] for call in step["model_calls"]]
        asked = asked or (["search"] if step["role"] == "search" else [])
        together.setdefault(step["batch"], []).extend(asked)
    listed = [" + ".join(each) for each in together.values() if each not in ([], ["search"])]
    log.info("%s: %s", reply["state_excerpt"]["canonical_question"], " → ".join(listed))
    return listed


def test_happy_path_asks_each_role_once_and_cites(docent: Docent, server: Sensible) -> None:
    reply = docent.ask("How do I descale the heater?")
    assert reply["status"] == "completed"
    assert reply["mode"] == "model"
    assert reply["citations"]
    assert {c["citation_status"] for c in reply["citations"]} == {"verified"}
    assert calls(docent, reply) == ANSWERED
    assert reply["usage"]["model_calls"] == len(server.server.ledger)
    assert f"`{' → '.join(ANSWERED)}`" in (CHECKOUT / "docs/models.md").read_text(encoding="utf-8")


def test_guardrails_and_router_ask_while_search_is_at_work(
    docent: Docent, server: Sensible
) -> None:
    over = threading.Event()
    for role in ASKING:
        server.says(role, lambda asked: Response(json.dumps(sensible(asked)), until=over))
    asked = {"message": "How do I stop a brew?", "collections": ["teapot"], "wait": False}
    turn = docent.call("POST", "/api/chat/", asked).body["turn_id"]
    until = time.monotonic() + PATIENCE_SECONDS
    stands: dict[str, str] = {}
    # Neither gets a reply before the search is done and both have asked.
    while stands.get("search") != "done" or ASKING.difference(server.server.prompts()):
        assert time.monotonic() < until, stands
        time.sleep(0.05)
        stands = {step["role"]: step["status"] for step in steps(docent, turn)}
    assert {stands[role] for role in ASKING} == {"running"}
    over.set()
    (reply,) = endings(docent, [turn])
    assert reply["status"] == "completed"


def test_a_russian_question_is_answered_in_russian_from_english_documents(
    docent: Docent, server: Sensible
) -> None:
    server.says("translation", {"text_eng": "How do I descale the heater?"})
    server.says(
        "response", lambda asked: Response(f"Наполните бак водой и кислотой. {marker(asked)}")
    )
    reply = docent.ask("Как удалить накипь с нагревателя?")
    assert reply["status"] == "completed"
    assert reply["language"] == "ru"
    assert "Наполните бак" in reply["reply"]
    assert "Источники" in reply["reply"]
    assert calls(docent, reply) == ["translation", *ANSWERED]
    assert any("Russian" in asked.system + asked.user for asked in asked_of(server, "response"))


def marker(asked: Call) -> str:
    return cited(asked).rpartition(" ")[2]


def asked_of(server: Sensible, prompt: str) -> list[Call]:
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
    assert calls(docent, asked) == ["essence", *INTAKE, "clarification"]
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
    assert calls(docent, answered) == ["essence", *ANSWERED]
    assert answered["state_excerpt"]["canonical_question"] == whole
    assert "How do I set it up?" in data(asked_of(server, "essence")[0], "open_question") or (
        "How do I set it up?" in asked_of(server, "essence")[0].user
    )


def test_an_unsafe_question_is_declined_politely(docent: Docent, server: Sensible) -> None:
    server.says(
        "guardrails",
        {
            "passed": False,
            "guardrails_passed": False,
            "within_scope": True,
            "category": "harmful_content",
        },
    )
    reply = docent.ask("How do I poison a guest with the Teapot?")
    assert reply["status"] == "completed"
    assert reply["state_excerpt"]["clarification_reason"] == "harmful_content"
    assert calls(docent, reply) == [*INTAKE, "clarification"]
    assert reply["suggested_actions"]


def test_an_answer_that_quality_sends_back_is_written_again(
    docent: Docent, server: Sensible
) -> None:
    again = {"decision": "regenerate", "quality_decision": "regenerate", "score": 0.3}
    server.says("quality", again | {"analysis": "It leaves out how often."}, {})
    reply = docent.ask("How do I descale the heater?")
    assert reply["status"] == "completed"
    assert server.server.prompts().count("response") == 2
    assert calls(docent, reply) == [*ANSWERED, "response", "quality"]
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
    # The last words are fixed ones.
    intake = ["essence", *INTAKE]
    assert [calls(docent, each) for each in asked] == [[*intake, "clarification"]] * 3 + [intake]


def test_who_leaves_a_clarification_is_let_go(docent: Docent, server: Sensible) -> None:
    talk = session()
    vague: dict[str, Any] = {"vagueness_score": 0.9, "needs_clarification": True, "asks": True}
    server.says("router", vague | {"clarifying_questions": ["Set up what?"]})
    assert docent.ask("How do I set it up?", **talk)["status"] == "awaiting_user"
    server.says("essence", {"context_type": "clarification", "clarification_result": "exit"})
    left = docent.ask("forget about it, bye", **talk)
    assert left["status"] == "completed"
    assert "Goodbye" in left["reply"]
    assert calls(docent, left) == []


def test_three_turns_resolve_that_and_keep_the_wish_of_two_lines(
    docent: Docent, server: Sensible
) -> None:
    talk = session()
    first = docent.ask("How do I stop a brew?", **talk)
    assert calls(docent, first) == ANSWERED
    # Found well, but not so well that the evaluator need not look at it.
    server.says("essence", {"canonical_question": PLAINLY})
    server.says(
        "evaluator",
        {"sufficient": False, "usable": True, "missing": "an example", "refined_query": PLAINLY},
    )
    second = docent.ask("Explain with an example.", **talk)
    assert second["status"] == "completed"
    assert calls(docent, second) == [
        "essence",
        *INTAKE,
        "evaluator",
        "evaluator",
        "response",
        "quality",
    ]
    essence = asked_of(server, "essence")[-1]
    assert "How do I stop a brew?" in essence.user
    server.reset()
    server.says(
        "essence",
        {
            "canonical_question": "How do I stop a brew?",
            "context_type": "follow_up",
            "response_notes": ["2 lines"],
        },
    )
    third = docent.ask("Now summarize that in 2 lines.", **talk)
    assert third["status"] == "completed"
    assert calls(docent, third) == ["essence", *ANSWERED]
    assert "2 lines" in asked_of(server, "response")[0].user
    assert "Explain with an example." in asked_of(server, "essence")[0].user
