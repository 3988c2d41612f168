"""Tool: what is declared wrongly stops the start with a sentence; the rest is listed."""

import json
from typing import Any

import pytest
from django.core.management import call_command

from agents.errors import ContractError
from agents.tools.tool import TOOLS, Arguments, Caller, Effect, tool, tools_of
from tests.agents.tools.bench import ROLE, Bench, Search


def plain(arguments: Search, caller: Caller) -> str:
    """Do something."""
    return "x"


def silent(arguments: Search, caller: Caller) -> str:
    return "x"


def loose(query: str, caller: Caller) -> str:
    """Take what is no shape."""
    return query


def lone(arguments: Search) -> str:
    """Know no caller."""
    return "x"


def look(arguments: Search, caller: Caller) -> str:
    """Look, as another does."""
    return "x"


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (silent, {}, "The tool silent has no docstring"),
        (plain, {"roles": ["pilot"]}, "The tool plain names the role 'pilot'; there are: manager"),
        (plain, {"roles": []}, "names no role"),
        (look, {}, "There are two tools look: "),
        (loose, {}, "must take its arguments, as a class derived from Arguments"),
        (lone, {}, "must take its arguments"),
        (plain, {"timeout": 0}, "timeout above 0"),
        (plain, {"effect": Effect.HERE, "identity": ["case"]}, r"told apart by \['case'\]"),
        (plain, {"identity": ["query"]}, "has no effect"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_a_sentence(
    bench: Bench, function: Any, options: dict[str, Any], says: str
) -> None:
    before = dict(TOOLS)
    with pytest.raises(ContractError, match=says):
        tool(**{"roles": [ROLE], **options})(function)
    assert before == TOOLS


def test_roles_have_the_tools_that_name_them(bench: Bench) -> None:
    assert [each.name for each in tools_of("quality")] == ["judge"]
    assert tools_of("response") == []


def test_a_schema_is_strict_and_says_its_bounds_in_words(bench: Bench) -> None:
    schema = TOOLS["refund"].schema()
    assert schema["function"]["description"] == "Pay back an amount of an invoice."
    parameters = schema["function"]["parameters"]
    assert parameters["required"] == ["invoice", "amount", "note"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["amount"] == {
        "type": "number",
        "description": "at most 1000, more than 0.",
    }


def test_arguments_that_are_not_declared_are_refused() -> None:
    assert Arguments.model_config["extra"] == "forbid"


def test_the_command_lists_every_tool_with_schema_and_roles(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("tools", "--json")
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(TOOLS)
    assert rows["refund"]["roles"] == ["evaluator"]
    assert rows["refund"]["effect"] == "here"
    assert rows["refund"]["schema"]["function"]["name"] == "refund"
    call_command("tools")
    assert "critical" in capsys.readouterr().out
