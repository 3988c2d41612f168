"""The main job, end to end: questions in, cited answers out, through real workers."""

import json
import re
from uuid import uuid4

import pytest

from tests.e2e.conftest import PAGES, Docent
from tests.servers import redis_database


def plain(text: str) -> str:
    return re.sub(r"[\s*`_]+", " ", text).strip().casefold()


def test_an_answer_cites_sentences_that_stand_in_the_right_page(docent: Docent) -> None:
    reply = docent.ask("How do I descale the heater?")
    assert reply["status"] == "completed"
    assert reply["route"] == "documentation"
    assert reply["mode"] == "extractive"
    assert reply["citations"]
    for citation in reply["citations"]:
        assert citation["citation_status"] == "verified"
        page = PAGES.parent / citation["source"]
        assert plain(citation["quote"]) in plain(page.read_text())
        assert f"[{citation['marker']}]" in reply["reply"]
    assert any(citation["title"] == "Cleaning and descaling" for citation in reply["citations"])


def test_a_question_the_documents_cannot_answer_is_asked_back_and_says_what_is_missing(
    docent: Docent,
) -> None:
    reply = docent.ask("What is the weather in Paris today?")
    assert reply["status"] == "awaiting_user"
    assert reply["last_agent"] == "clarification"
    assert "do not mention" in reply["reply"]
    assert "paris" in reply["reply"].casefold()
    assert not reply["citations"]


def test_a_vague_first_question_is_clarified_with_options_and_then_answered(
    docent: Docent,
) -> None:
    session = f"vague-{uuid4()}"
    asked = docent.ask("How do I set it up?", session_id=session)
    assert asked["status"] == "awaiting_user"
    assert any("WordPress" in option for option in asked["suggested_actions"])
    answered = docent.ask("the WordPress plugin", session_id=session)
    assert answered["status"] == "completed"
    assert answered["state_excerpt"]["context_type"] == "clarification"
    assert "teapot.zip" in answered["reply"]


def test_who_leaves_a_clarification_is_let_go(docent: Docent) -> None:
    session = f"leaving-{uuid4()}"
    assert docent.ask("How do I set it up?", session_id=session)["status"] == "awaiting_user"
    left = docent.ask("never mind, bye", session_id=session)
    assert left["status"] == "completed"
    assert "Goodbye" in left["reply"]
    assert left["suggested_actions"] == []


def test_a_follow_up_keeps_its_topic(docent: Docent) -> None:
    session = f"follow-{uuid4()}"
    docent.ask("What does the WordPress plugin do?", session_id=session)
    followed = docent.ask("How do I set it up?", session_id=session)
    assert followed["status"] == "completed"
    assert followed["state_excerpt"]["context_type"] == "follow_up"
    assert "teapot.zip" in followed["reply"]


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("ru", "Как удалить накипь с нагревателя?"),
        ("es", "¿Cómo descalcifico el calentador de la tetera?"),
        ("de", "Wie entkalke ich die Heizung der Teekanne?"),
    ],
)
def test_a_question_in_another_language_is_detected_as_such(
    docent: Docent, language: str, question: str
) -> None:
    assert docent.ask(question)["language"] == language


def test_a_command_is_answered_without_searching(docent: Docent) -> None:
    reply = docent.ask("/help")
    assert (reply["status"], reply["last_agent"]) == ("completed", "command")
    assert reply["usage"]["steps"] == 3


def test_every_step_of_a_turn_can_be_traced(docent: Docent) -> None:
    reply = docent.ask("How do I stop a brew?")
    trace = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body
    roles = [step["role"] for step in trace["steps"]]
    assert roles[:4] == ["manager", "lang", "manager", "translation"]
    assert {"guardrails", "search", "response", "quality"} <= set(roles)
    search = next(step for step in trace["steps"] if step["role"] == "search")
    assert search["read"]["canonical_question"] == "How do I stop a brew?"
    assert search["wrote"]["search_results"]
    assert all(step["status"] == "done" and step["run_seconds"] >= 0 for step in trace["steps"])
    printed = docent.manage("trace", reply["turn_id"]).stdout
    assert "augmentation" in printed


def test_the_terminal_prints_the_object_of_the_api_and_exits_0(docent: Docent) -> None:
    words = ("chat", "-q", "How do I stop a brew?", "--collection", "teapot", "--json")
    done = docent.manage(*words)
    assert done.returncode == 0, done.stderr
    printed, called = json.loads(done.stdout), docent.ask("How do I stop a brew?")
    assert printed.keys() == called.keys()
    assert printed["reply"] == called["reply"]


def test_the_terminal_exits_3_when_it_asks_back(docent: Docent) -> None:
    words = ("chat", "-q", "What is the weather in Paris today?", "--collection", "teapot")
    assert docent.manage(*words).returncode == 3


def test_the_terminal_answers_when_nothing_else_runs(docent: Docent) -> None:
    other_queues = {"REDIS_URL": redis_database(docent.environment["REDIS_URL"], 2)}
    alone = Docent(docent.port, docent.environment | other_queues)
    done = alone.manage("chat", "-q", "How do I stop a brew?", "--collection", "teapot", "--json")
    assert done.returncode == 0, done.stderr
    assert "red button" in json.loads(done.stdout)["reply"]


def test_a_key_of_an_example_reaches_its_assistant_and_nothing_else(docent: Docent) -> None:
    taken = docent.manage("assistants", "import", "assistant/examples/telecom")
    assert taken.returncode == 0, taken.stderr
    key = docent.manage("apikey", "create", "phones", "--assistant", "telecom").stdout.strip()
    question = {"message": "What does roaming cost in zone 2?"}
    reply = docent.call("POST", "/api/chat/", question, key=key).body
    assert {citation["title"] for citation in reply["citations"]} == {"Roaming abroad"}
    foreign = docent.call("POST", "/api/chat/", question | {"collections": ["teapot"]}, key=key)
    assert (foreign.status, foreign.body["code"]) == (404, "unknown_collection")
    # Who asks for no assistant does not find its documents.
    anybody = docent.call("POST", "/api/chat/", question).body
    assert "Roaming abroad" not in anybody["reply"]
