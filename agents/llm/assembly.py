"""Assembly: a reply put together from what a server sends, as far as it is worth reading."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agents.llm.degeneration import STRIDE, Watch
from agents.llm.requests import Reply, ToolCall, Usage
from knowledge.postgres_text import storable

DONE = b"[DONE]"
BEGIN, END = "<think>", "</think>"
BROKEN = "\ufffd"
# Where servers put thoughts that are no part of the text.
BESIDE = ("reasoning_content", "reasoning")
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
LONGEST_REASON, LONGEST_ID = 20, 100
# Bytes of one event, or of a body without events: what would fill the memory is no reply.
LONGEST_PART = 4_000_000
MOST_TOKENS = 2**31 - 1


def nothing() -> None:
    """Stand for what nobody wants to hear."""


@dataclass
class Thoughts:
    """The text of one reply on its way, piece by piece, without what its model thinks aloud.

    The beginning of a thought may be missing, since some servers put it into the prompt: then what
    was said before its end is void, and `on_void` is told.
    """

    on_void: Callable[[], None] = nothing
    _undecided: str = ""  # not decided yet: its end, or all of it, may still become a mark
    _said: str = ""
    _state: str = "beginning"

    def without(self, piece: str) -> str:
        """Return as much of the text as is known to be said, now that this piece is there."""
        self._undecided += piece
        if self._state == "beginning":
            start = self._undecided.lstrip()
            if BEGIN.startswith(start[: len(BEGIN)]) and len(start) < len(BEGIN):
                return ""
            self._state = "thinking" if start.startswith(BEGIN) else "saying"
        if self._state == "thinking":
            _, end, text = self._undecided.partition(END)
            if not end or not text.strip():
                return ""
            self._undecided, self._state = text.lstrip(), "beginning"
            return self.without("")
        if self._has_stray_end():
            self._undecided = BEGIN + self._undecided[self._undecided.index(END) :]
            self._said, self._state = "", "thinking"
            self.on_void()
            return self.without("")
        return self._say(len(self._undecided) - self._half_a_mark())

    def rest(self) -> str:
        """Return what was held back at the end of the reply: nothing of a thought."""
        return "" if self._state == "thinking" else self._say(len(self._undecided))

    def _has_stray_end(self) -> bool:
        """Whether a thought ends that never began; in code, or after its beginning, it is named."""
        if END not in self._undecided:
            return False
        before = (self._said + self._undecided).rpartition(END)[0]
        return BEGIN not in before and not before.endswith("`")

    def _half_a_mark(self) -> int:
        lengths = range(len(END) - 1, 0, -1)
        return next((each for each in lengths if self._undecided.endswith(END[:each])), 0)

    def _say(self, characters: int) -> str:
        text, self._undecided = self._undecided[:characters], self._undecided[characters:]
        self._said += text
        return text


class Overlong(Exception):
    """One part of an answer is longer than any reply can be."""


async def parts(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each server-sent event; of an answer without events its body, and DONE.

    Raises Overlong.
    """
    rest, body, has_events = b"", b"", False
    async for chunk in chunks:
        if len(rest) + len(body) + len(chunk) > LONGEST_PART:
            raise Overlong
        # Only at these bytes: text may hold other characters that end a line somewhere.
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                has_events = True
                yield line[5:].strip()
            elif not has_events:
                body += line + b"\n"
    if rest.startswith(b"data:"):
        yield rest[5:].strip()
    elif not has_events and (whole := (body + rest).strip()):
        yield whole
        yield DONE


@dataclass
class Assembly:
    """A reply as far as it has arrived. `on_text` is handed every piece of its text.

    `on_void` is told when what was said so far turns out to be a thought.
    """

    on_text: Callable[[str], None]
    on_void: Callable[[], None] = nothing
    watch: Watch = field(default_factory=Watch)
    on_begin: Callable[[], None] | None = None  # told once, when anything arrives
    has_begun: bool = False
    is_stopped: bool = False  # the rest is not worth reading
    start: float = field(default_factory=time.monotonic)
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    id: str = ""
    first_token_seconds: float | None = None
    _pieces: list[str] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _calls: list[dict[str, str]] = field(default_factory=list)
    _half: str = ""

    def __post_init__(self) -> None:
        self._thoughts = Thoughts(self._void)

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(self._pieces)

    def add(self, chunk: dict[str, Any]) -> None:
        """Add one chunk of a stream, or a whole completion."""
        if not self.has_begun and self.on_begin:
            self.on_begin()
        self.has_begun = True
        self.id = self.id or storable(_text(chunk.get("id")))[:LONGEST_ID]
        if usage := _dict(chunk, "usage"):
            self.usage = _usage(usage)
        for choice in _dicts(chunk, "choices"):
            self.finish = _reason(choice) or self.finish
            # A stream may end with the message as a whole: that was said already.
            message = _dict(choice, "delta") or ({} if self._pieces else _dict(choice, "message"))
            self._refusal += [_text(message.get("refusal"))]
            for call in _dicts(message, "tool_calls"):
                self._call(call)
            for name in (*BESIDE, "refusal"):
                self._stop(self.watch.reason(_text(message.get(name)), ""))
            self._read(_text(message.get("content")))

    def stop(self, reason: str) -> None:
        """Take what was read for the whole reply, for this reason."""
        self.is_stopped, self.finish = True, reason

    def reply(self, model: str) -> Reply:
        """Return the whole reply."""
        self._say(self._thoughts.rest())
        if not self.is_stopped:
            self._stop(self.watch.last())
        refusal = "".join(self._refusal)
        finish = self.finish or "stop"
        return Reply(
            text=self.text or storable(refusal),
            finish_reason="refusal" if refusal and finish == "stop" else finish,
            usage=self.usage,
            model=model,
            seconds=time.monotonic() - self.start,
            first_token_seconds=self.first_token_seconds,
            id=self.id,
            tool_calls=tuple(
                ToolCall(each["id"] or f"call_{place}", each["name"], storable(each["arguments"]))
                for place, each in enumerate(self._calls)
            ),
        )

    def _read(self, text: str) -> None:
        """Take a piece, a whole reply also, as far as it is worth it."""
        for place in range(0, len(text), STRIDE):
            if self.is_stopped:
                return
            piece = text[place : place + STRIDE]
            said = self._thoughts.without(piece)
            self._say(said)
            self._stop(self.watch.reason(piece, said))

    def _stop(self, reason: str) -> None:
        if reason:
            self.stop(reason)

    def _void(self) -> None:
        self._pieces.clear()
        self.watch.void()
        self.on_void()

    def _say(self, text: str) -> None:
        text = self._half + text
        # Some servers send the two halves of an emoji apart; one alone is no text.
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text.removesuffix(self._half) if self._half else text
        if not text:
            return
        if self.first_token_seconds is None:
            self.first_token_seconds = time.monotonic() - self.start
        # What cannot be stored stays visible as broken.
        text = text.replace("\0", BROKEN)
        text = storable(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        self._pieces.append(text)
        self.on_text(text)

    def _call(self, delta: dict[str, Any]) -> None:
        """Add a piece of a tool call to the one it belongs to, or begin another."""
        function, call_id = _dict(delta, "function"), _text(delta.get("id"))
        index = delta.get("index", -1 if not call_id else len(self._calls))
        position = index if isinstance(index, int) and index < len(self._calls) else None
        # Some servers number every call 0 and tell them apart by their ids.
        if not self._calls or position is None or call_id not in {"", self._calls[position]["id"]}:
            self._calls.append({"id": call_id, "name": "", "arguments": ""})
            self.watch.begin_call()
            position = -1
        call = self._calls[position]
        arguments = function.get("arguments")
        written = json.dumps(arguments) if _is_dict(arguments) else _text(arguments)
        call["name"] += _text(function.get("name"))
        call["arguments"] += written
        self._stop(self.watch.reason(written, ""))


def _reason(choice: dict[str, Any]) -> str:
    reason = _text(choice.get("finish_reason")).lower()
    return REASONS.get(reason, reason)[:LONGEST_REASON]


def _usage(fields: dict[str, Any]) -> Usage:
    prompt = _count(fields, "prompt_tokens")
    cached = _count(_dict(fields, "prompt_tokens_details"), "cached_tokens")
    if prompt is None or cached is None or cached > prompt:
        cached = None
    return Usage(prompt, _count(fields, "completion_tokens"), cached)


def _count(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if valid else None


def _text(value: Any) -> str:
    """Return a text; of parts with a type, those that are text."""
    if isinstance(value, list):
        return "".join(_text(each.get("text")) for each in value if _is_dict(each))
    return value if isinstance(value, str) else ""


def _dict(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _dicts(fields: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    value = fields.get(name)
    return (each for each in value if _is_dict(each)) if isinstance(value, list) else iter(())


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)
