"""Dialects: how each server wants to be spoken to, learned from what it refuses.

All speak OpenAI's chat API, each with parts of it missing. A request begins with everything;
a part that the server names in its refusal is said in another way or left out, and what then
worked is remembered for this model as long as the process lives.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.llm.requests import Message, Request
from knowledge.postgres_text import storable
from knowledge.providers import Provider
from prompts.prompt import Prompt

SHAPE = Prompt("_shape", "schema")
# What to say instead, in order; None: leave it out.
LIMITS: tuple[str | None, ...] = ("max_tokens", "max_completion_tokens", None)
FORMATS: tuple[str | None, ...] = ("json_schema", "json_object", None)
COUNTED = frozenset({"maxItems", "maxLength"})
# How a refusal calls each part of a request.
NAMES = {
    "usage": re.compile(r"stream_options|include_usage"),
    "limit": re.compile(r"max_tokens|max_completion_tokens"),
    "temperature": re.compile(r"temperature"),
    "bounds": re.compile(r"max_?length|max_?items"),
    "format": re.compile(
        r"response_format|json_schema|json_object|json schema|structured output|grammar"
    ),
    "choice": re.compile(r"tool_choice|tool choice"),
    "stream": re.compile(r"\bstream(ing)?\b"),
    "system": re.compile(r"system[^.]{0,12} role|role[^.]{0,12}system|system message"),
}
# About this one question, and not about what the server knows.
ONLY_THIS = re.compile(r"too (large|long|many|high)|at most|exceed|context.length|maximum context")


@dataclass(frozen=True)
class Dialect:
    """What one model of one server is sent."""

    stream: bool = True
    usage: bool = True  # tokens, at the end of a stream
    temperature: bool = True  # with a temperature
    system: bool = True  # with a message of its own
    limit: str | None = LIMITS[0]
    format: str | None = FORMATS[0]
    bounds: bool = True  # of lists and texts, in the schema
    choice: bool = True  # tools may be shown without being offered

    def parameters(self, name: str, request: Request) -> dict[str, Any]:
        """Return what `chat.completions.create` is called with for the model of this name."""
        spelled_out = request.schema and (_is_spelled_out(request) or self.format != FORMATS[0])
        parameters: dict[str, Any] = {
            "model": name,
            "messages": self._messages(request, _shape(request.schema) if spelled_out else ""),
        }
        if self.limit:
            parameters[self.limit] = request.max_tokens
        if self.temperature:
            parameters["temperature"] = request.temperature
        if self.stream:
            parameters["stream"] = True
        if self.stream and self.usage:
            parameters["stream_options"] = {"include_usage": True}
        if request.schema and self.format:
            schema = request.schema if self.bounds else _unbounded(request.schema)
            parameters["response_format"] = _format(self.format, request.schema_name, schema)
        return parameters | self._tools(request)

    def _tools(self, request: Request) -> dict[str, Any]:
        if not request.tools or not (request.may_call or self.choice):
            return {}
        # What a tool is given is held to its bounds when it is called.
        parameters: dict[str, Any] = {"tools": [_unbounded(each) for each in request.tools]}
        if not request.may_call:
            parameters["tool_choice"] = "none"
        return parameters

    def _messages(self, request: Request, more: str) -> list[dict[str, Any]]:
        messages = [{**each, "content": _content(each)} for each in request.messages]
        if more:
            messages[0]["content"] = f"{messages[0]['content']}\n\n{more}"
        if not self.system and len(messages) > 1 and messages[0]["role"] == "system":
            first = messages.pop(0)
            messages[0]["content"] = f"{first['content']}\n\n{messages[0]['content']}"
        return messages

    def without(self, refusal: str, request: Request) -> "Dialect | None":
        """Return the dialect without the part that a refusal names first; None: it names none."""
        shaped = bool(request.schema)
        bounded = self.bounds and request.schema != _unbounded(request.schema)
        text = refusal.lower()
        if ONLY_THIS.search(text):
            return None
        present = {
            "usage": self.stream and self.usage,
            "limit": bool(self.limit),
            "temperature": self.temperature,
            "bounds": bounded and self.format == FORMATS[0],
            "format": shaped and bool(self.format),
            "choice": self.choice and bool(request.tools) and not request.may_call,
            "stream": self.stream,
            "system": self.system,
        }
        mentions = {part: match.start() for part in NAMES if (match := NAMES[part].search(text))}
        refused = min(
            (part for part in mentions if present[part]), key=mentions.__getitem__, default=""
        )
        if refused == "format" and present["bounds"]:
            # What a server says of a schema it cannot use rarely says why.
            refused = "bounds"
        match refused:
            case "":
                return None
            case "limit":
                return replace(self, limit=LIMITS[LIMITS.index(self.limit) + 1])
            case "format":
                return replace(self, format=FORMATS[FORMATS.index(self.format) + 1])
        without: dict[str, Any] = {refused: False}
        return replace(self, **without)


# Anthropic's endpoint takes a response_format and ignores it; OpenAI's strict mode refuses lengths
# of texts.
BEGINNINGS: Mapping[str, Dialect] = {
    "anthropic": Dialect(format=None),
    "openai": Dialect(bounds=False),
}
# So many replies that fit are worth the tokens of one that has to be asked for again.
FITTING = 20
_learned: dict[tuple[str, str], Dialect] = {}
# Of a model and the name of a shape: how often the shape is still spelled out.
_missed: dict[tuple[str, str], int] = {}


def dialect_of(server: Provider, name: str) -> Dialect:
    """Return how this model of this server is spoken to, as far as is known."""
    beginning = BEGINNINGS.get(server.name, Dialect())
    return _learned.get((server.base_url, name), beginning)


def remember(server: Provider, name: str, dialect: Dialect) -> None:
    """Remember a dialect that worked."""
    _learned[server.base_url, name] = dialect


def missed(request: Request) -> None:
    """Spell this shape out to this model in the next prompts: its reply did not have it."""
    _missed[request.model, request.schema_name] = FITTING


def fitted(request: Request) -> None:
    """Note that a reply had its shape; after enough of them it is not spelled out any more."""
    left = _missed.pop((request.model, request.schema_name), 0) - 1
    if left > 0:
        _missed[request.model, request.schema_name] = left


def _is_spelled_out(request: Request) -> bool:
    return (request.model, request.schema_name) in _missed


def forget() -> None:
    """Forget everything that was learned."""
    _learned.clear()
    _missed.clear()


def _format(kind: str, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if kind == "json_object":
        return {"type": kind}
    return {"type": kind, "json_schema": {"name": name, "schema": schema, "strict": True}}


def _unbounded(node: Any) -> Any:
    """A schema without the bounds that not every server takes; its descriptions say them."""
    if isinstance(node, list):
        return [_unbounded(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {name: _unbounded(each) for name, each in node.items() if name not in COUNTED}


def _shape(schema: dict[str, Any]) -> str:
    rendered = SHAPE.render({"schema": json.dumps(_unbounded(schema), ensure_ascii=False)})
    return str(rendered.messages[1]["content"])


def _content(message: Message) -> Any:
    content = message.get("content")
    return storable(content) if isinstance(content, str) else content
