"""Assembly: puts a reply together from what a server sends, whole or in pieces.

Every server sends a little more or less than OpenAI does. What is missing or strange is left out;
only what makes the reply unusable is an error.
"""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.llm.requests import Reply, ToolCall, Usage
from agents.llm.thoughts import Thoughts
from knowledge.postgres_text import storable

DONE = b"[DONE]"
# How servers say it that don't say it in OpenAI's words.
REASONS = {
    "end_turn": "stop",
    "eos": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "function_call": "tool_calls",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "recitation": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "spii": "content_filter",
}
LONGEST_REASON = 20
MOST_TOKENS = 2**31 - 1


async def parts(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each server-sent event; of an answer without events its body, and DONE."""
    rest, body, told = b"", b"", False
    async for chunk in chunks:
        # Only at these bytes: text may hold other characters that end a line somewhere.
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                told = True
                yield line[5:].strip()
            elif not told:
                body += line + b"\n"
    if rest.startswith(b"data:"):
        yield rest[5:].strip()
    elif not told and (whole := (body + rest).strip()):
        yield whole
        yield DONE


@dataclass
class Assembly:
    """A reply as far as it has arrived. `tell` is handed every piece of its text."""

    tell: Callable[[str], None]
    on_begin: Callable[[], None] | None = None  # told once, when anything arrives
    has_begun: bool = False
    begun: float = field(default_factory=time.monotonic)
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    first_token_seconds: float | None = None
    _pieces: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: list[dict[str, str]] = field(default_factory=list)
    _thoughts: Thoughts = field(default_factory=Thoughts)
    _half: str = ""

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._pieces)

    def add(self, told: dict[str, Any]) -> None:
        """Add one chunk of a stream, or a whole completion."""
        if not self.has_begun and self.on_begin:
            self.on_begin()
        self.has_begun = True
        if usage := _dict(told, "usage"):
            self.usage = _usage(usage)
        for choice in _dicts(told, "choices"):
            self.finish = _reason(choice) or self.finish
            # A stream may end with the message as a whole: that was said already.
            said = _dict(choice, "delta") or ({} if self._pieces else _dict(choice, "message"))
            self._refusal += [_text(said.get("refusal"))]
            for call in _dicts(said, "tool_calls"):
                self._call(call)
            self._say(self._thoughts.without(_text(said.get("content"))))

    def reply(self, model: str) -> Reply:
        """Return the whole reply."""
        self._say(self._thoughts.rest())
        refusal = "".join(self._refusal)
        finish = self.finish or "stop"
        return Reply(
            text=self.text or storable(refusal),
            finish_reason="refusal" if refusal and finish == "stop" else finish,
            usage=self.usage,
            model=model,
            seconds=time.monotonic() - self.begun,
            first_token_seconds=self.first_token_seconds,
            tool_calls=tuple(
                ToolCall(each["id"] or f"call_{place}", each["name"], storable(each["arguments"]))
                for place, each in enumerate(self._calls)
            ),
        )

    def _say(self, text: str) -> None:
        text = self._half + text
        # Some servers send the two halves of an emoji apart; one alone is no text.
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text.removesuffix(self._half) if self._half else text
        if not text:
            return
        if self.first_token_seconds is None:
            self.first_token_seconds = time.monotonic() - self.begun
        text = storable(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        self._pieces.append(text)
        self.tell(text)

    def _call(self, told: dict[str, Any]) -> None:
        """Add a piece of a tool call to the one it belongs to, or begin another."""
        function, known = _dict(told, "function"), _text(told.get("id"))
        index = told.get("index", -1 if not known else len(self._calls))
        place = index if isinstance(index, int) and index < len(self._calls) else None
        # Some servers number every call 0 and tell them apart by their ids.
        if not self._calls or place is None or known not in {"", self._calls[place]["id"]}:
            self._calls.append({"id": known, "name": "", "arguments": ""})
            place = -1
        call = self._calls[place]
        arguments = function.get("arguments")
        call["name"] += _text(function.get("name"))
        call["arguments"] += json.dumps(arguments) if _is_dict(arguments) else _text(arguments)


def _reason(choice: dict[str, Any]) -> str:
    said = _text(choice.get("finish_reason")).lower()
    return REASONS.get(said, said)[:LONGEST_REASON]


def _usage(told: dict[str, Any]) -> Usage:
    read = _count(told, "prompt_tokens")
    cached = _count(_dict(told, "prompt_tokens_details"), "cached_tokens")
    if read is None or cached is None or cached > read:
        cached = None
    return Usage(read, _count(told, "completion_tokens"), cached)


def _count(told: dict[str, Any], name: str) -> int | None:
    value = told.get(name)
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if known else None


def _text(value: Any) -> str:
    """Return a text; of parts with a type, those that are text."""
    if isinstance(value, list):
        return "".join(_text(each.get("text")) for each in value if _is_dict(each))
    return value if isinstance(value, str) else ""


def _dict(told: dict[str, Any], name: str) -> dict[str, Any]:
    value = told.get(name)
    return value if isinstance(value, dict) else {}


def _dicts(told: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    value = told.get(name)
    return (each for each in value if _is_dict(each)) if isinstance(value, list) else iter(())


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
