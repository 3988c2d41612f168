"""Tools: what a model wants to be called is checked, journalled and never paid twice."""

from typing import Any

import pytest
from pydantic import BaseModel

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.tools import Call, Tool, Wanted
from agents.models import ModelCall
from agents.trace import trace
from prompts.prompt import Prompt
from tests import factories
from tests.agents.llm.asking import llm
from tests.scripted import Said, Scripted

ASKED: dict[str, Any] = {"question": "Which are open?", "hour": "noon"}


class Which(BaseModel):
    """Which invoices."""

    status: str


TOOLS = (Tool("invoices", "Lists invoices.", Which), Tool("payments", "Lists payments.", Which))


def calling(*calls: tuple[str, str], text: str = "") -> Said:
    told = [
        {
            "index": place,
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    return Said(text, finish="tool_calls", tool_calls=told)


OPEN = calling(("invoices", '{"status": "open"}'))
WANTED = Wanted("", (Call("call_0", "invoices", {"status": "open"}),))


def test_tools_are_sent_and_what_is_wanted_of_them_is_returned(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", calling(("invoices", '{"status": "open"}'), ("payments", ""), text="So:"))
    wanted = llm().call(probe, TOOLS, **ASKED)
    assert wanted == Wanted("So:", (*WANTED.calls, Call("call_1", "payments", {})))
    (asked,) = models.server.ledger
    first = asked.body["tools"][0]
    assert (first["type"], first["function"]["name"]) == ("function", "invoices")
    assert first["function"]["parameters"]["required"] == ["status"]


def test_a_model_may_answer_in_words_instead(models: Scripted, probe: Prompt) -> None:
    models.says("probe", Said("There are none."))
    assert llm().call(probe, TOOLS, **ASKED) == Wanted("There are none.")


def test_what_came_of_the_calls_is_told_after_the_prompt(models: Scripted, probe: Prompt) -> None:
    models.says("probe", OPEN, Said("Two are open."))
    asked = llm()
    wanted = asked.call(probe, TOOLS, **ASKED)
    then = wanted.told({"call_0": "INV-1, INV-2"})
    assert asked.call(probe, TOOLS, then=then, **ASKED).text == "Two are open."
    *_, said, came = models.server.ledger[1].body["messages"]
    assert said["tool_calls"][0]["function"]["name"] == "invoices"
    assert came == {"role": "tool", "tool_call_id": "call_0", "content": "INV-1, INV-2"}


def test_a_step_that_is_done_again_finds_its_calls_and_pays_once(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", OPEN)
    assert llm().call(probe, TOOLS, **ASKED) == WANTED
    assert llm().call(probe, TOOLS, **ASKED) == WANTED
    assert len(models.server.ledger) == ModelCall.objects.count() == 1
    row = ModelCall.objects.get()
    assert (row.outcome, row.finish_reason) == ("ok", "tool_calls")
    assert row.tool_calls == [
        {"id": "call_0", "name": "invoices", "arguments": '{"status": "open"}'}
    ]


def test_an_equal_question_of_the_same_owner_gets_the_same_calls(
    models: Scripted, probe: Prompt
) -> None:
    models.says("probe", OPEN)
    ada: dict[str, Any] = {"owner": "user:1/ada", "fresh": 60}
    for subject in ("test/1", "test/2"):
        assert llm(subject=subject, **ada).call(probe, TOOLS, **ASKED) == WANTED
    assert len(models.server.ledger) == 1


def test_with_other_tools_it_is_another_question(models: Scripted, probe: Prompt) -> None:
    models.says("probe", OPEN)
    ada: dict[str, Any] = {"owner": "user:1/ada", "fresh": 60}
    llm(subject="test/1", **ada).call(probe, TOOLS, **ASKED)
    llm(subject="test/2", **ada).call(probe, TOOLS[:1], **ASKED)
    assert len(models.server.ledger) == 2


@pytest.mark.parametrize(
    ("said", "outcome", "problem"),
    [
        (calling(("find_invoice", "{}")), "unknown_tool", "there are: invoices, payments"),
        (calling(("invoices", '{"status": "op')), "malformed", "not a JSON object"),
        (calling(("invoices", '["open"]')), "malformed", "not a JSON object"),
        (calling(("invoices", "[" * 100_000)), "malformed", "not a JSON object"),
        (Said(""), "empty", "the reply is empty"),
    ],
)
def test_a_call_that_cannot_be_is_mended_once_by_the_same_model(
    models: Scripted, probe: Prompt, said: Said, outcome: str, problem: str
) -> None:
    models.says("probe", said, OPEN)
    for _ in (1, 2):
        assert llm().call(probe, TOOLS, **ASKED) == WANTED
    assert list(ModelCall.objects.values_list("outcome", flat=True)) == [outcome, "ok"]
    assert len(models.server.ledger) == 2
    told = models.server.ledger[1].user
    assert problem in told
    assert "invoices, payments" in told


def test_a_tool_that_does_not_exist_twice_is_a_failure(models: Scripted, probe: Prompt) -> None:
    models.says("probe", calling(("find_invoice", "{}")))
    with pytest.raises(ModelFailure, match="there is no tool 'find_invoice'") as caught:
        llm().call(probe, TOOLS, **ASKED)
    assert caught.value.outcome is Outcome.UNKNOWN_TOOL


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
        (404, "No endpoints found that support tool use."),
    ],
)
def test_a_server_without_tools_is_told_as_such_and_the_second_model_is_asked(
    models: Scripted, probe: Prompt, status: int, message: str
) -> None:
    body = f'{{"error": {{"message": "{message.replace(chr(34), chr(39))}"}}}}'
    without = Said(status=status, body=body)
    models.says("probe", lambda asked: OPEN if asked.body["model"] == "spare" else without)
    with pytest.raises(ModelFailure, match="take a model that calls tools") as caught:
        llm(subject="test/0").call(probe, TOOLS, **ASKED)
    assert caught.value.outcome is Outcome.REJECTED
    assert llm("spare@scripted").call(probe, TOOLS, **ASKED) == WANTED


def test_the_trace_shows_staff_what_was_wanted(models: Scripted, probe: Prompt) -> None:
    models.says("probe", OPEN)
    llm().call(probe, TOOLS, **ASKED)
    turn = factories.turn(factories.conversation())
    step = turn.steps.order_by("number")[0]
    ModelCall.objects.update(envelope=turn, step_number=step.number)
    shown, hidden = (
        trace(turn, staff=staff)["steps"][0]["model_calls"][0] for staff in (True, False)
    )
    assert shown["tool_calls"][0]["name"] == "invoices"
    assert "tool_calls" not in hidden
