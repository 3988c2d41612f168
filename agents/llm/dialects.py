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

from django.conf import settings

from agents.llm.requests import Message, Request
from knowledge.postgres_text import storable
from knowledge.providers import Provider, parse_model_name
from prompts.prompt import Prompt

SHAPE = Prompt("_shape", "schema")
# What to say instead, in order; None: leave it out.
LIMITS: tuple[str | None, ...] = ("max_tokens", "max_completion_tokens", None)
FORMATS: tuple[str | None, ...] = ("json_schema", "json_object", None)
# How a refusal calls each part of a request.
NAMES = {
    "usage": re.compile(r"stream_options|include_usage"),
    "limit": re.compile(r"max_tokens|max_completion_tokens"),
    "temperature": re.compile(r"temperature"),
    "format": re.compile(r"response_format|json_schema|json_object|json schema|structured output"),
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
    shape_in_prompt: bool = False  # the shape stands in the prompt, whatever `format` says

    def parameters(self, name: str, request: Request) -> dict[str, Any]:
        """Return what `chat.completions.create` is called with for the model of this name."""
        spelled_out = request.schema and (self.shape_in_prompt or self.format != FORMATS[0])
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
            parameters["response_format"] = _format(self.format, request)
        return parameters

    def _messages(self, request: Request, more: str) -> list[dict[str, Any]]:
        messages = [{**each, "content": _content(each)} for each in request.messages]
        if more:
            messages[0]["content"] = f"{messages[0]['content']}\n\n{more}"
        if not self.system and len(messages) > 1 and messages[0]["role"] == "system":
            first = messages.pop(0)
            messages[0]["content"] = f"{first['content']}\n\n{messages[0]['content']}"
        return messages

    def without(self, refusal: str, *, shaped: bool) -> "Dialect | None":
        """Return the dialect without the part that a refusal names first; None: it names none."""
        text = refusal.lower()
        if ONLY_THIS.search(text):
            return None
        present = {
            "usage": self.stream and self.usage,
            "limit": bool(self.limit),
            "temperature": self.temperature,
            "format": shaped and bool(self.format),
            "stream": self.stream,
            "system": self.system,
        }
        mentions = {part: match.start() for part in NAMES if (match := NAMES[part].search(text))}
        refused = min(
            (part for part in mentions if present[part]), key=mentions.__getitem__, default=""
        )
        match refused:
            case "":
                return None
            case "limit":
                return replace(self, limit=LIMITS[LIMITS.index(self.limit) + 1])
            case "format":
                return replace(self, format=FORMATS[FORMATS.index(self.format) + 1])
        without: dict[str, Any] = {refused: False}
        return replace(self, **without)


# Anthropic's endpoint takes a response_format and ignores it.
BEGINNINGS: Mapping[str, Dialect] = {"anthropic": Dialect(format=None)}
_learned: dict[tuple[str, str], Dialect] = {}


def dialect_of(server: Provider, name: str) -> Dialect:
    """Return how this model of this server is spoken to, as far as is known."""
    beginning = BEGINNINGS.get(server.name, Dialect())
    return _learned.get((server.base_url, name), beginning)


def remember(server: Provider, name: str, dialect: Dialect) -> None:
    """Remember a dialect that worked."""
    _learned[server.base_url, name] = dialect


def spell_out_shape(model: str) -> None:
    """Remember that `model@provider` does not keep to a shape unless its prompt says it."""
    name, provider = parse_model_name(model)
    # A reply out of the journal may be of one that is not set any more.
    if server := settings.PROVIDERS.get(provider):
        remember(server, name, replace(dialect_of(server, name), shape_in_prompt=True))


def forget() -> None:
    """Forget everything that was learned."""
    _learned.clear()


def _format(kind: str, request: Request) -> dict[str, Any]:
    if kind == "json_object":
        return {"type": kind}
    shape = {"name": request.schema_name, "schema": request.schema, "strict": True}
    return {"type": kind, "json_schema": shape}


def _shape(schema: dict[str, Any]) -> str:
    rendered = SHAPE.render({"schema": json.dumps(schema, ensure_ascii=False)})
    return str(rendered.messages[1]["content"])


def _content(message: Message) -> Any:
    content = message.get("content")
    return storable(content) if isinstance(content, str) else content
