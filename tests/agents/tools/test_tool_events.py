"""Tool events: what watchers of a turn hear of its tools."""

import json

from agents.steps import events
from agents.tools.toolbox import Toolbox
from conversations.event_shapes import EVENTS, ToolUse
from tests.agents.tools.bench import Bench, want


def test_watchers_hear_of_tools_but_not_what_was_said_to_them(
    toolbox: Toolbox, bench: Bench
) -> None:
    toolbox.call_all([want("look", query="secret"), want("secret_tool"), want("scan", query="s")])
    entries = [
        (name, data)
        for _, name, data in (each for each in events.follow(toolbox.stream, seconds=1) if each)
        if name.startswith("tool_call")
    ]
    assert [name for name, _ in entries].count("tool_call_start") == 3
    complete = {data["call"]: data for name, data in entries if name == "tool_call_complete"}
    assert [(complete[n]["tool"], complete[n]["outcome"]) for n in (1, 2, 3)] == [
        ("look", "ok"), ("", "failed"), ("scan", "ok"),
    ]  # fmt: skip
    assert "secret" not in json.dumps([entries, toolbox.trajectory()])
    for name, data in entries:
        EVENTS[name].model_validate(data)
    told = ToolUse.model_validate(toolbox.trajectory()[2])
    assert (told.call, told.tool, told.outcome) == (3, "scan", "ok")
    assert complete[1]["role"] == "evaluator"
