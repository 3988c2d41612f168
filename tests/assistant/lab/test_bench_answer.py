"""What the answer bench makes of the calls it saw."""

import pytest
from pytest_django import Settings

from agents.steps import events
from assistant.lab import bench_answer
from assistant.lab.bench_answer import longest_chain, overlapping, shared_tokens
from assistant.lab.model_server import Call


def call(prompt: str, began: float, ended: float) -> Call:
    system = {"role": "system", "content": f"# {prompt}"}
    return Call("/", {}, {"messages": [system]}, began, ended)


def test_calls_at_the_same_time_are_waited_for_once() -> None:
    calls = [call("guardrails", 0, 2), call("router", 0, 1), call("response", 2, 3)]
    assert len(longest_chain(calls)) == 2
    assert {frozenset(pair) for pair in overlapping(calls)} == {frozenset({"guardrails", "router"})}


def test_a_long_call_hides_the_two_that_follow_each_other_beside_it() -> None:
    calls = [call("search", 0, 4), call("router", 0, 1), call("evaluator", 1, 3)]
    assert [each.prompt for each in longest_chain(calls)] == ["router", "evaluator"]


def test_only_what_every_request_begins_with_can_be_cached() -> None:
    requests = [[{"content": "r" * 40 + rest}] for rest in ("one", "owe", "two")]
    assert shared_tokens(requests) == 10
    assert shared_tokens([]) == 0


@pytest.mark.django_db
def test_a_question_is_watched_for_longer_than_its_turn_may_take(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[float] = []

    def follow(_: str, *, seconds: float) -> list[None]:
        watched.append(seconds)
        return []

    settings.TURN_DEADLINE_SECONDS = 600
    monkeypatch.setattr(events, "follow", follow)
    with pytest.raises(TimeoutError):
        bench_answer.ask("How do I set a model?", "docent")
    assert watched[0] > 600
