"""The trace holds what a reader needs to see why an answer came about."""

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from agents.models import Envelope, Step
from agents.trace.trace import trace
from tests import factories
from tests.agents.passages import PASSAGES

CITED = [factories.CITATION]
SYSTEM = "# evaluator\nYou judge whether passages are enough."


@pytest.fixture
def owner(db: None) -> User:
    return User.objects.create_user("shop")


@pytest.fixture
def turn(owner: User) -> Envelope:
    """A turn of two searches, of which the evaluator found the first insufficient."""
    envelope = factories.turn(
        factories.conversation(owner=owner),
        canonical_question="How many days carry over?",
        route="documentation",
        retrieval_k=8,
        response_notes=["in 2 lines"],
        citations_used=CITED,
    )
    envelope.steps.all().delete()
    add = iter(range(1, 20)).__next__
    _step(envelope, add(), "manager", {"stage": "essence", "to": ["essence"], "notes": {}})
    _step(envelope, add(), "essence", {"canonical_question": "How many days carry over?"})
    stats = {"certainty": 0.07, "hits": {"keyword": [1]}}
    writes = {"search_results": PASSAGES[:1], "search_quality": "poor", "search_stats": stats}
    _step(envelope, add(), "search", writes)
    verdict = {"sufficient": False, "missing": "an example", "confidence": 0.6}
    writes = {"evaluation": verdict, "refined_query": "carry over example", "limitations": []}
    judged = _step(envelope, add(), "evaluator", writes, mode="model")
    _step(envelope, add(), "search", {"search_results": PASSAGES, "search_quality": "good"})
    writes = {"evaluation": {"sufficient": True, "missing": "", "confidence": 0.9}}
    _step(envelope, add(), "evaluator", writes, mode="extractive", degraded="timeout: it took 30 s")
    factories.model_call(
        envelope,
        step=judged,
        request={"messages": [{"role": "system", "content": SYSTEM}]},
        reply='{"sufficient": false}',
        first_token_seconds=0.2,
    )
    return envelope


def _step(envelope: Envelope, number: int, role: str, writes: dict[str, Any], **more: Any) -> int:
    Step.objects.create(
        envelope=envelope,
        number=number,
        batch=number - 1,
        role=role,
        stage=role,
        status="done",
        started=now(),
        ended=now(),
        output=writes,
        **more,
    )
    return number


def test_the_plan_says_what_was_understood_and_where_it_went(turn: Envelope) -> None:
    plan = trace(turn)["plan"]
    assert plan["canonical_question"] == "How many days carry over?"
    assert (plan["route"], plan["retrieval_k"]) == ("documentation", 8)
    assert plan["response_notes"] == ["in 2 lines"]


def test_each_search_has_its_query_its_passages_and_its_verdict(turn: Envelope) -> None:
    first, second = trace(turn)["iterations"]
    assert (first["round"], first["query"]) == (1, "How many days carry over?")
    assert (second["round"], second["query"]) == (2, "carry over example")
    assert (first["quality"], second["quality"]) == ("poor", "good")
    assert first["passages"][0]["chunk_id"] == PASSAGES[0]["chunk_id"]
    assert first["passages"][0]["score"] == PASSAGES[0]["score"]
    assert len(second["passages"]) == len(PASSAGES)
    assert first["verdict"]["sufficient"] is False
    assert first["verdict"]["missing"] == "an example"
    assert first["verdict"]["refined_query"] == "carry over example"
    assert second["verdict"]["sufficient"] is True


def test_answer_and_citations_are_there(turn: Envelope) -> None:
    public = trace(turn)
    assert public["answer"] == "Yes."
    assert public["citations"] == CITED


def test_a_step_says_who_did_it_and_why_not_a_model(turn: Envelope) -> None:
    by_number = {step["number"]: step for step in trace(turn)["steps"]}
    assert (by_number[4]["mode"], by_number[4]["degraded"]) == ("model", None)
    assert by_number[6]["mode"] == "extractive"
    assert by_number[6]["degraded"] == "timeout: it took 30 s"
    assert by_number[2]["mode"] is None


def test_model_calls_stand_under_their_step_with_what_they_cost(turn: Envelope) -> None:
    (call,) = next(step for step in trace(turn)["steps"] if step["number"] == 4)["model_calls"]
    assert (call["prompt"], call["prompt_hash"]) == ("evaluator", "0123456789ab")
    assert (call["model"], call["provider"]) == ("small@fake", "fake")
    assert (call["input_tokens"], call["output_tokens"], call["cost"]) == (100, 10, 0.0005)
    assert (call["cached"], call["outcome"], call["first_token_seconds"]) == (False, "ok", 0.2)
    usage = trace(turn)["usage"]
    assert usage["model_calls"] == usage["roles"]["evaluator"]["model_calls"] == 1


def test_prompts_are_for_staff_only(turn: Envelope, owner: User, client: Client) -> None:
    client.force_login(owner)
    address = reverse("turn-trace", args=[turn.pk])
    theirs = client.get(address)
    assert theirs.status_code == HTTPStatus.OK
    assert "You judge whether" not in theirs.content.decode()
    client.force_login(User.objects.create_superuser("root"))
    whole = client.get(address).json()
    (call,) = next(step for step in whole["steps"] if step["number"] == 4)["model_calls"]
    assert call["messages"] == [{"role": "system", "content": SYSTEM}]
    assert call["reply"] == '{"sufficient": false}'


def test_the_trace_is_json(turn: Envelope) -> None:
    assert json.loads(json.dumps(trace(turn, staff=True)))


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that breaks no line."""
    monkeypatch.setenv("COLUMNS", "240")


def test_the_command_prints_calls_under_their_steps(
    turn: Envelope, wide: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("trace", str(turn.pk))
    printed = capsys.readouterr().out
    assert "100 → 10 tokens, 0.000500 USD" in printed
    assert "not by a model: timeout" in printed
    assert "Search 2: 'carry over example', good" in printed
    assert "    certainty 0.07\n" in printed
    assert "You judge" not in printed


def test_the_command_prints_at_which_stage_was_decided_and_what_was_noted(
    turn: Envelope, wide: None, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = {"response": None, "clarification_reason": "vague_request"}
    output = {"stage": "clarification", "to": ["clarification"], "notes": notes}
    turn.steps.filter(number=1).update(stage="intake", output=output)
    call_command("trace", str(turn.pk))
    printed = capsys.readouterr().out
    assert ", decided at intake" in printed
    assert 'notes: {"clarification_reason": "vague_request"}' in printed


def test_the_command_prints_what_was_said_when_asked_for_all(
    turn: Envelope, wide: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("trace", str(turn.pk), "--full")
    assert "You judge whether passages are enough." in capsys.readouterr().out


def test_the_page_of_a_turn_draws_its_calls(turn: Envelope, client: Client) -> None:
    client.force_login(User.objects.create_superuser("root"))
    page = client.get(reverse("admin:agents_envelope_change", args=[turn.pk])).content.decode()
    assert page.count('class="bar-call"') == 1
    assert "100 → 10 tokens" in page
    assert "not by a model" in page
