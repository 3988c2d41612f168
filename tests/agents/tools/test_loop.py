"""Loop: rounds that end, replies and effects that are found again, and what models are shown."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agents.llm import dialects
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Request, ToolCall
from agents.models import ModelCall, ToolRun
from agents.steps.records import Claim
from agents.tools import loop
from agents.tools import toolbox as toolbox_module
from agents.tools.loop import Answer
from agents.tools.tool import TOOLS, excerpt
from agents.tools.toolbox import Toolbox
from prompts.prompt import Prompt
from tests.agents.tools.bench import Bench, again, asks, effects, model_at, outcomes, want
from tests.scripted import Call, Response, Scripted

ASKED: dict[str, Any] = {"question": "Please pay it back.", "hour": "noon"}
REFUND = want("refund", invoice="I-1", amount=20)


def answer(claim: Claim, probe: Prompt, rounds: int = 10) -> tuple[Answer, Toolbox]:
    """Return what the model answers at a step, and the toolbox it used."""
    with toolbox_module.lend(Toolbox.of(claim)) as toolbox:
        return loop.run(model_at(claim), probe, rounds=rounds, **ASKED), toolbox


def told(models: Scripted, call: int = -1) -> list[dict[str, Any]]:
    """Return the messages of one call after those of the prompt."""
    messages: list[dict[str, Any]] = models.server.ledger[call].body["messages"][2:]
    return messages


def test_a_model_that_needs_no_tool_just_answers(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", Response("It is good."))
    said, _ = answer(claim, probe)
    assert said == Answer("It is good.")
    (call,) = models.server.ledger
    names = [each["function"]["name"] for each in call.body["tools"]]
    assert names == ["look", "scan", "widen", "doze", "refund", "order"]
    assert call.body["tools"][0]["function"]["parameters"]["required"] == ["query"]
    assert "tool_choice" not in call.body


def test_a_model_calls_tools_until_it_answers_and_each_round_is_a_call_in_the_journal(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says(
        "probe",
        asks(want("look", 1, query="a"), want("doze", 2, query="b"), text="I look it up."),
        asks(REFUND),
        Response("Done: case 1."),
    )
    said, _ = answer(claim, probe)
    assert (said.text, said.rounds, said.stopped) == ("Done: case 1.", 2, "")
    calls = list(ModelCall.objects.values_list("number", "outcome", "reply"))
    assert calls == [(1, "ok", "I look it up."), (2, "ok", ""), (3, "ok", "Done: case 1.")]
    rows = [(run.round, run.tool, run.model_call_id) for run in said.runs]
    first, second, _ = ModelCall.objects.values_list("pk", flat=True)
    assert rows == [(1, "look", first), (1, "doze", first), (2, "refund", second)]
    assistant, look, doze, *_ = told(models)
    assert assistant["content"] == "I look it up."
    assert [each["id"] for each in assistant["tool_calls"]] == ["call_1", "call_2"]
    assert (look["tool_call_id"], doze["tool_call_id"]) == ("call_1", "call_2")
    assert '{"rate": null, "found": "a"}' in look["content"]
    assert look["content"].startswith("<result-")


def test_a_model_in_an_endless_loop_is_told_to_answer_from_what_it_knows(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    def script(call: Call) -> Response:
        if call.body.get("tool_choice") == "none":
            return Response("As far as I know: yes.")
        return asks(want("look", query=f"{len(models.server.ledger)}"))

    models.says("probe", script)
    said, _ = answer(claim, probe, rounds=5)
    assert (said.text, said.rounds, len(bench.used)) == ("As far as I know: yes.", 5, 5)
    assert said.stopped == "That was the last of your 5 rounds with tools."
    assert len(models.server.ledger) == 6
    assert said.stopped in told(models)[-1]["content"]


@pytest.mark.parametrize(
    ("wanted", "rounds"),
    [
        (["scan", "scan", "scan", "scan"], 3),
        (["widen", "look"], 1),
        (["look", "look", "look", "look", "look"], 4),
        (["fly", "fly", "fly", "fly"], 3),
        (["scan", "scan", "doze", "scan", "scan", "scan"], 6),
    ],
)
def test_a_loop_that_brings_nothing_more_ends_early(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt, wanted: list[str], rounds: int
) -> None:
    def script(call: Call) -> Response:
        place = len(models.server.ledger) - 1
        is_last = call.body.get("tool_choice") == "none"
        return Response("That's it.") if is_last else asks(want(wanted[place], query="x"))

    models.says("probe", script)
    said, _ = answer(claim, probe)
    assert (said.text, said.rounds) == ("That's it.", rounds)


def test_a_model_that_falls_silent_after_its_tools_is_asked_for_its_answer(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", asks(REFUND), Response(""), Response("It is paid back."))
    said, _ = answer(claim, probe)
    assert (said.text, effects()) == ("It is paid back.", 1)


def test_a_model_that_is_silent_from_the_beginning_fails(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", Response(""))
    with pytest.raises(ModelFailure) as raised:
        answer(claim, probe)
    assert raised.value.outcome is Outcome.EMPTY


def test_a_model_that_fails_in_the_midst_leaves_word_of_what_was_done(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", asks(REFUND), Response(status=400))
    toolbox = Toolbox.of(claim)
    with toolbox_module.lend(toolbox), pytest.raises(ModelFailure):
        loop.run(model_at(claim), probe, **ASKED)
    assert [run.tool for run in toolbox.effects()] == ["refund"]


def test_a_step_done_again_asks_nobody_twice_and_changes_nothing_twice(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", asks(want("look", query="a")), asks(REFUND), Response("Done."))
    first, _ = answer(claim, probe)
    second, _ = answer(again(claim), probe)
    assert second == first
    assert len(models.server.ledger) == ModelCall.objects.count() == 3
    assert (len(bench.used), effects(), ToolRun.objects.count()) == (2, 1, 2)


def test_equal_requests_of_another_turn_are_not_answered_from_an_earlier_reply(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    models.says("probe", Response("Yes."))
    for subject in ("one/1", "two/1"):
        llm = models.model("evaluator", subject)
        llm.fresh = timedelta(hours=1)
        with toolbox_module.lend(Toolbox.of(claim)):
            loop.run(llm, probe, **ASKED)
    assert len(models.server.ledger) == 2


def test_what_a_model_wrote_wrongly_is_told_back_so_that_every_server_takes_it(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    wrong = [
        ToolCall("same", "look", "{"),
        ToolCall("same", "delete all!", "[1]"),
        ToolCall("", "look", json.dumps({"query": "x" * 200_000})),
    ]
    models.says("probe", asks(*wrong), Response("I could not."))
    _, toolbox = answer(claim, probe)
    assert outcomes(toolbox) == [
        ("look", "validation"), ("delete all!", "hallucination"), ("look", "validation"),
    ]  # fmt: skip
    assistant, *results = told(models)
    calls = assistant["tool_calls"]
    assert [each["function"]["name"] for each in calls] == ["look", "delete_all_", "look"]
    assert {each["function"]["arguments"] for each in calls} == {"{}"}
    ids = [each["id"] for each in calls]
    assert len(set(ids)) == 3
    assert [each["tool_call_id"] for each in results] == ids
    assert bench.used == []


def test_a_reply_that_is_all_arguments_is_not_read_to_its_end(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    long = ToolCall("a", "look", json.dumps({"query": "x" * 200_000}))
    models.says("probe", asks(long), Response("I could not."))
    with toolbox_module.lend(Toolbox.of(claim)) as toolbox:
        said = loop.run(model_at(claim, max_tokens=500), probe, **ASKED)
    assert (said.text, toolbox.runs) == ("I could not.", [])
    outcomes_of_calls = ModelCall.objects.order_by("number").values_list("outcome", flat=True)
    assert list(outcomes_of_calls) == ["truncated", "ok"]


def test_calls_that_are_much_alike_are_no_loop_of_a_model(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    note = "It was charged twice, as the customer says, and should have been charged once."
    wanted = [
        want("refund", place, invoice=f"I-{place}", amount=20, note=note) for place in range(6)
    ]
    models.says("probe", asks(*wanted), Response("Done."))
    said, _ = answer(claim, probe)
    assert (said.text, effects()) == ("Done.", 6)


def test_of_a_hundred_calls_in_one_reply_most_are_not_even_told_back(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    wanted = [want("look", place, query=str(place)) for place in range(100)]
    models.says("probe", asks(*wanted), Response("Enough."))
    said, _ = answer(claim, probe)
    assert (len(bench.used), len(said.runs)) == (8, 32)
    assert len(told(models)) == 33


def test_the_failure_of_a_critical_tool_is_told_to_the_user_with_its_number(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    bench.faults = [OSError("x"), OSError("x")]
    models.says("probe", asks(want("look", query="a")), Response("I don't know."))
    said, _ = answer(claim, probe)
    (failure,) = said.failures
    text = said.with_failures("de")
    assert text.startswith("I don't know.\n\nIch konnte nicht alles nachschlagen")
    assert failure.error_id in text


def test_a_critical_tool_that_failed_is_told_also_when_it_was_called_in_vain_afterwards(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    bench.faults = [OSError("x"), OSError("x")]
    models.says("probe", asks(want("look", query="a")), asks(want("look")), Response("No."))
    said, _ = answer(claim, probe)
    assert [run.outcome for run in said.runs] == ["execution", "validation"]
    assert said.failures[0].error_id in said.with_failures("en")


def test_of_an_effect_elsewhere_that_failed_the_user_reads_that_nobody_knows(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TOOLS, "order", replace(TOOLS["order"], critical=True))
    bench.faults = [OSError("reset")]
    models.says("probe", asks(want("order", query="cable")), Response("I don't know."))
    said, _ = answer(claim, probe)
    assert "not known whether what you asked for was done" in said.with_failures("en")
    assert "look everything up" not in said.with_failures("en")


def test_a_critical_tool_that_worked_in_the_end_and_one_that_is_not_critical_are_no_failures(
    models: Scripted, bench: Bench, claim: Claim, probe: Prompt
) -> None:
    bench.faults = [OSError("x"), OSError("x"), OSError("x")]
    models.says(
        "probe",
        asks(want("look", query="a")),
        asks(want("scan", query="a")),
        asks(want("look", query="a")),
        Response("Yes."),
    )
    said, _ = answer(claim, probe)
    assert [run.outcome for run in said.runs] == ["execution", "execution", "ok"]
    assert said.with_failures("en") == "Yes."


def test_a_server_that_knows_no_tool_choice_gets_no_tools_for_the_last_answer() -> None:
    tools = ({"type": "function", "function": {"name": "look"}},)
    request = Request("fake@scripted", ({"role": "user", "content": "x"},), 10, 0.0, tools=tools)
    last = Request(
        "fake@scripted", ({"role": "user", "content": "x"},), 10, 0.0, tools=tools, may_call=False
    )
    dialect = dialects.Dialect()
    assert dialect.parameters("fake", last)["tool_choice"] == "none"
    simpler = dialect.without("Unknown parameter: tool_choice", last)
    assert simpler
    assert "tools" not in simpler.parameters("fake", last)
    assert simpler.parameters("fake", request)["tools"] == list(tools)


def test_a_long_text_is_shown_by_its_two_ends() -> None:
    text = "a" * 5000 + "z" * 5000
    shown = excerpt(text)
    assert shown.startswith("a" * 900 + "\n")
    assert shown.endswith("\n" + "z" * 525)
    assert "8,575 characters left out" in shown
    assert excerpt("short" * 300) == "short" * 300


def test_a_request_without_tools_has_the_digest_it_had_before_there_were_any() -> None:
    request = Request("fake@scripted", ({"role": "user", "content": "x"},), 10, 0.0)
    assert set(request.as_json()) == {
        "model", "messages", "max_tokens", "temperature", "schema_name", "schema",
    }  # fmt: skip
