"""Tool turns: what is told to be bad, and turns of real steps beside a model that misbehaves."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents.tools.tool import TOOLS
from assistant.lab import tool_turns
from assistant.lab.scripted_tools import BY_NAME, LINES, OPEN, Line
from assistant.lab.tool_turns import Row, reasons
from assistant.management.commands import evaluate

LINE = BY_NAME["works"]
ROW = Row(
    "works", "completed", "mixed", {"ok": 2}, {"open_refund_case ok": 1}, 3, 2, 1,
    {"open_refund_case ok": 1}, "Your case R20001 is open.", 0.4, [],
)  # fmt: skip


def test_what_goes_well_is_good() -> None:
    assert [*reasons(LINE, ROW, 120)] == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "failed"}, "The turn is failed."),
        ({"seconds": 130.0}, "The turn took 130 s, and may take 120."),
        ({"text": ""}, "does not read what happened"),
        ({"text": "R20001: open_refund_case says {}"}, "reads 'open_refund_case'"),
        ({"text": "R20001 of u456"}, "reads 'u456'"),
        ({"text": f"R20001 {tool_turns.KEY}"}, f"reads '{tool_turns.KEY}'"),
        ({"cases": 2}, "has 2 cases"),
        ({"model_calls": 40}, "asked 40 times"),
        ({"outcomes": {"ok": 1}}, r"came to {'ok': 1}"),
    ],
)
def test_what_may_not_be_is_told(changes: dict[str, Any], says: str) -> None:
    (reason,) = reasons(LINE, replace(ROW, **changes), 120)
    assert says in reason


def test_there_are_as_many_lines_as_names() -> None:
    assert len(BY_NAME) == len(LINES) > 30


def test_a_line_that_is_none_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(CommandError, match="no line 'colour'; there are: works; "):
        call_command("evaluate", "tools", "--only", "colour")


@pytest.mark.parametrize(("found", "code"), [([], 0), (["The turn is failed."], 1)])
def test_the_exit_code_says_whether_a_line_ends_badly(
    monkeypatch: pytest.MonkeyPatch, found: list[str], code: int
) -> None:
    monkeypatch.setattr(tool_turns, "measure", lambda *_: [replace(ROW, reasons=found)])
    monkeypatch.setattr(evaluate, "call_command", lambda *_, **__: None)
    with pytest.raises(SystemExit) if code else nullcontext():
        call_command("evaluate", "tools")


def watch(done: int, total: int) -> None:
    """Hear of progress."""


@pytest.mark.django_db(transaction=True)
def test_turns_come_to_what_their_lines_say_and_leave_the_tools_as_they_were() -> None:
    before = dict(TOOLS)
    names = ("works", "a tool of another role", "the same refund twice at once", "the system fails")
    lines = [BY_NAME[name] for name in names]
    rows = tool_turns.measure(lines, watch)
    assert [(row.line, row.reasons) for row in rows] == [(name, []) for name in names]
    assert [row.asked for row in rows] == [2, 0, 1, 6]
    assert rows[1].metrics == {"read_minutes hallucination": 1}
    assert before == TOOLS


@pytest.mark.django_db(transaction=True)
def test_a_line_that_expects_something_else_is_bad() -> None:
    idle = Line("idle", lambda number: None, cases=1, reads=OPEN)
    (row,) = tool_turns.measure([idle], watch)
    assert row.reasons == [
        "The customer does not read what happened.",
        "The billing system has 0 cases.",
    ]
