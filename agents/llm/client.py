"""Client: one attempt at one provider over HTTP, and the reply put together from what it sends."""

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import openai
from httpx2 import HTTPError, Timeout, TimeoutException

from agents.llm import dialects, failures
from agents.llm.dialects import Dialect
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply, Request, ToolCall, Usage
from knowledge.postgres_text import storable
from knowledge.providers import Provider, UnknownProvider, parse_full_model_name, provider

CONNECT_SECONDS = 5.0
DRAIN_SECONDS = 0.1
# The status of a refusal that may name a part of the request the server does not take.
CHOOSY = frozenset({400, 422, 501})
DONE = b"[DONE]"
BEGIN, END = "<think>", "</think>"
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
OnText = Callable[[str], None]


@dataclass
class Thoughts:
    """The text of one reply on its way, piece by piece."""

    _undecided: str = ""  # not decided yet: the beginning may still become a mark
    _state: str = "beginning"

    def without(self, piece: str) -> str:
        """Return as much of the text as is known to be said, now that this piece is there."""
        if self._state == "saying":
            return piece
        self._undecided += piece
        if self._state == "beginning":
            start = self._undecided.lstrip()
            if BEGIN.startswith(start[: len(BEGIN)]) and len(start) < len(BEGIN):
                return ""
            if not start.startswith(BEGIN):
                return self._say(self._undecided)
            self._state = "thinking"
        _, end, text = self._undecided.partition(END)
        if not end or not text.strip():
            return ""
        return self._say(text.lstrip())

    def rest(self) -> str:
        """Return what was held back at the end of the reply: nothing of a thought."""
        return self._say(self._undecided) if self._state == "beginning" else ""

    def _say(self, text: str) -> str:
        self._state, self._undecided = "saying", ""
        return text


async def parts(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each server-sent event; of an answer without events its body, and DONE."""
    rest, body, has_events = b"", b"", False
    async for chunk in chunks:
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
    """A reply as far as it has arrived. `on_text` is handed every piece of its text."""

    on_text: Callable[[str], None]
    on_begin: Callable[[], None] | None = None  # told once, when anything arrives
    has_begun: bool = False
    start: float = field(default_factory=time.monotonic)
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

    def add(self, chunk: dict[str, Any]) -> None:
        """Add one chunk of a stream, or a whole completion."""
        if not self.has_begun and self.on_begin:
            self.on_begin()
        self.has_begun = True
        if usage := _dict(chunk, "usage"):
            self.usage = _usage(usage)
        for choice in _dicts(chunk, "choices"):
            self.finish = _reason(choice) or self.finish
            # A stream may end with the message as a whole: that was said already.
            message = _dict(choice, "delta") or ({} if self._pieces else _dict(choice, "message"))
            self._refusal += [_text(message.get("refusal"))]
            for call in _dicts(message, "tool_calls"):
                self._call(call)
            self._say(self._thoughts.without(_text(message.get("content"))))

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
            seconds=time.monotonic() - self.start,
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
            self.first_token_seconds = time.monotonic() - self.start
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
            position = -1
        call = self._calls[position]
        arguments = function.get("arguments")
        call["name"] += _text(function.get("name"))
        call["arguments"] += json.dumps(arguments) if _is_dict(arguments) else _text(arguments)


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


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    return loop


_loop = _started()


@cache
def _client(server: Provider) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=server.base_url,
        # Servers of one's own want none; the client wants some.
        api_key=server.api_key or "none",
        # Chosen by who runs the machine and meant for other programs.
        organization="",
        project="",
        max_retries=0,
        # Compressed, pieces would wait until there is enough to compress.
        default_headers={"Accept-Encoding": "identity"},
    )


def _restart() -> None:
    """A forked process has neither the loop's thread nor its connections."""
    global _loop
    _loop = _started()
    _client.cache_clear()


os.register_at_fork(after_in_child=_restart)


def send(
    request: Request,
    *,
    seconds: float,
    begin: float | None = None,
    on_text: OnText | None = None,
) -> Reply:
    """Return the reply of one attempt, there as a whole within `seconds`. Raises ModelFailure.

    `begin` is within how many seconds something of it must have arrived. `on_text` is handed every
    piece of the reply while it arrives, in the calling thread.
    """
    pieces: SimpleQueue[str | None] = SimpleQueue()
    future = asyncio.run_coroutine_threadsafe(
        _send_within(request, seconds, begin or seconds, pieces.put), _loop
    )
    future.add_done_callback(lambda _: pieces.put(None))
    try:
        while (piece := pieces.get()) is not None:
            if on_text:
                on_text(piece)
        return future.result()
    finally:
        future.cancel()


async def _send_within(request: Request, seconds: float, begin: float, on_text: OnText) -> Reply:
    try:
        name, provider_name = parse_full_model_name(request.model)
        server = provider(provider_name)
    except UnknownProvider as error:
        raise ModelFailure(Outcome.MODEL_MISSING, str(error)) from error
    if server.lacks_key:
        raise failures.without_key(request.model, server)
    assembly = Assembly(on_text)
    end = asyncio.get_running_loop().time() + seconds
    try:
        async with asyncio.timeout(begin) as limit:
            assembly.on_begin = partial(limit.reschedule, end)
            return await _ask_until_understood(request, name, server, assembly, seconds)
    except TimeoutError as error:
        if begin < seconds and not assembly.has_begun:
            raise failures.not_begun(request.model, begin) from error
        characters = len(assembly.text)
        raise failures.too_late(request.model, seconds, characters) from error


async def _ask_until_understood(
    request: Request, name: str, server: Provider, assembly: Assembly, seconds: float
) -> Reply:
    """Ask, in ever plainer words as long as the server names what it does not take."""
    dialect = remembered = dialects.dialect_of(server, name)
    while True:
        try:
            await _post(request, dialect.parameters(name, request), server, assembly, seconds)
        except openai.APIStatusError as error:
            if failures.is_filtered(error):
                return Reply("", "content_filter", model=request.model)
            simpler = _simpler(dialect, error, request)
            if simpler is None:
                raise failures.of_response(error, request.model, server) from error
            dialect = simpler
        else:
            if dialect != remembered:
                dialects.remember(server, name, dialect)
            return assembly.reply(request.model)


def _simpler(dialect: Dialect, error: openai.APIStatusError, request: Request) -> Dialect | None:
    if error.status_code not in CHOOSY:
        return None
    return dialect.without(failures.refusal(error), shaped=bool(request.schema))


async def _post(
    request: Request,
    parameters: dict[str, Any],
    server: Provider,
    assembly: Assembly,
    seconds: float,
) -> None:
    """Send one HTTP request and add what comes back to the assembly."""
    timeout = Timeout(seconds, connect=CONNECT_SECONDS)
    ask: Any = _client(server).chat.completions.with_streaming_response.create
    try:
        async with ask(**parameters, timeout=timeout) as response:
            await _read(response.iter_bytes(), request.model, server, assembly)
    except openai.APIConnectionError as error:
        if isinstance(error, openai.APITimeoutError) and not failures.is_connect_timeout(error):
            raise TimeoutError from error
        raise failures.unreachable(error, request.model, server) from error
    except TimeoutException as error:
        raise TimeoutError from error
    except HTTPError as error:
        raise failures.broken_off(error, request.model, server) from error


async def _read(
    chunks: AsyncIterator[bytes], model: str, server: Provider, assembly: Assembly
) -> None:
    part, has_choices, done = b"", False, False
    async with aclosing(parts(chunks)) as events:
        async for part in events:
            if done := part == DONE:
                break
            values = _values(part, model, server)
            if error := values.get("error"):
                raise failures.of_error_in_reply(error, model, server)
            has_choices = has_choices or "choices" in values
            assembly.add(values)
    if part and not has_choices:
        raise failures.no_completion(part.decode(errors="replace"), model, server)
    if assembly.finish == "error" or not (done or assembly.finish):
        raise failures.broken_off(EOFError("no end of it came"), model, server)
    await _drain(chunks)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows the end, soon: a connection that was read out can be used again."""
    with suppress(TimeoutError, HTTPError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in chunks:
                pass


def _values(part: bytes, model: str, server: Provider) -> dict[str, Any]:
    text = part.decode(errors="replace")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise failures.no_completion(text, model, server) from error
    if not isinstance(values, dict):
        raise failures.no_completion(text, model, server)
    return values
