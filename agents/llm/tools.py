"""Tools: what a model may want to be called, and whether what it wants can be."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Message, Reply, ToolCall
from agents.llm.structured import schema_of, storable_json


@dataclass(frozen=True)
class Tool:
    """A function as a model is told of it: nothing is called here."""

    name: str  # of letters, digits, _ and -
    description: str
    arguments: type[BaseModel]

    def as_json(self) -> dict[str, Any]:
        """Return it as OpenAI's chat API has it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": schema_of(self.arguments),
        }
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Call:
    """One tool that a model wants to be called; its arguments are an object, of whatever shape."""

    id: str  # tells the calls of one reply apart; another reply may use it again
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What a model replied that has tools: a text, calls, or both."""

    text: str
    calls: tuple[Call, ...] = ()

    def told(self, results: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the messages that tell the model what came of its calls, by their ids.

        Results are data that others wrote: mark them as prompts do (`prompts.marking.marked`).
        """
        calls = [
            {
                "id": each.id,
                "type": "function",
                "function": {"name": each.name, "arguments": json.dumps(each.arguments)},
            }
            for each in self.calls
        ]
        said = {"role": "assistant", "content": self.text, "tool_calls": calls}
        came = (
            {"role": "tool", "tool_call_id": each.id, "content": results[each.id]}
            for each in self.calls
        )
        return (said, *came)


def wanted(reply: Reply, tools: Sequence[Tool]) -> Wanted:
    """Return what the reply wants. Raises ModelFailure: UNKNOWN_TOOL or MALFORMED.

    Whether arguments fit their tool says who calls it.
    """
    names = [tool.name for tool in tools]
    return Wanted(reply.text, tuple(_call(each, reply, names) for each in reply.tool_calls))


def _call(told: ToolCall, reply: Reply, names: Sequence[str]) -> Call:
    if told.name not in names:
        raise ModelFailure(
            Outcome.UNKNOWN_TOOL,
            f"there is no tool {told.name!r}; there are: {', '.join(names)}",
            said=_said(reply),
        )
    try:
        arguments = _object(told.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFailure(
            Outcome.MALFORMED,
            f"the arguments for {told.name} are not a JSON object ({error})",
            said=_said(reply),
        ) from error
    return Call(told.id, told.name, storable_json(arguments))


def _object(told: str) -> dict[str, Any]:
    # A tool without arguments is called with nothing by some.
    found = json.loads(told.strip() or "{}")
    if not isinstance(found, dict):
        raise TypeError("it is no object")
    return found


def _said(reply: Reply) -> str:
    calls = (f"{each.name}({each.arguments})" for each in reply.tool_calls)
    return "\n".join(filter(None, (reply.text, *calls)))
