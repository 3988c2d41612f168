"""Model server: speaks OpenAI's chat API on this machine and says what it is told to.

For benchmarks and tests: it keeps a ledger of every call with its times, and can fail in each of
the ways that providers do. A reply is chosen by the first line of the system message, which is
the prompt's name: `# evaluator`.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Headers = dict[str, str]


@dataclass
class Asked:
    """One call as it arrived. Times are of `time.monotonic`."""

    path: str
    headers: Headers
    body: dict[str, Any]
    began: float
    ended: float | None = None

    @property
    def prompt(self) -> str:
        """Name of the prompt that was sent, from the first line of the system message."""
        first = str(self.system).partition("\n")[0]
        return first.removeprefix("# ").strip()

    @property
    def system(self) -> str:
        """The system message."""
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        """The last message of the user."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class Said:
    """What the server does with a call: a reply, or one of the ways to fail."""

    text: str = ""
    finish: str = "stop"
    seconds: float = 0.0  # how long the reply takes, its pieces spread evenly
    first_after: float | None = None  # seconds before the first piece, of `seconds`
    status: int = 200
    headers: Headers = field(default_factory=dict)
    body: str | None = None  # sent as it is, instead of a completion
    hang: bool = False  # takes the call and never answers
    until: threading.Event | None = None  # takes the call and answers when this is set
    reset: bool = False  # breaks the connection before a word
    cut_after: int | None = None  # breaks the connection after so many pieces
    choices: bool = True  # False: a completion without a choice
    usage: bool = True
    refusal: str = ""
    whole: bool = False  # a completion in one piece, also when a stream was asked for
    done: bool = True  # False: a stream that does not say that it is done
    extra: dict[str, Any] = field(default_factory=dict)  # fields beside those of OpenAI
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    pieces: list[str] | None = None  # of the text, instead of a few characters each


Script = Callable[[Asked], Said]


class ModelServer:
    """The server, in a thread of its own, on a free port of this machine."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.ledger: list[Asked] = []
        self.connections = 0  # that were opened so far
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model server", daemon=True)

    @property
    def base_url(self) -> str:
        """What <NAME>_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> "ModelServer":
        """Begin to listen."""
        self._thread.start()
        self._ready.wait(10)
        return self

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def prompts(self) -> list[str]:
        """Return the prompts that were sent so far, in the order they arrived."""
        return [asked.prompt for asked in self.ledger]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while asked := await _received(reader):
                self.ledger.append(asked)
                said = self.script(asked)
                await _answer(asked, said, writer)
                asked.ended = time.monotonic()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Who asked went away, or this server does.
            pass
        finally:
            writer.close()


async def _received(reader: asyncio.StreamReader) -> Asked | None:
    """Return the next call on a connection; None when it was closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(first.split(" ")[1], headers, json.loads(body or b"{}"), time.monotonic())


async def _answer(asked: Asked, said: Said, writer: asyncio.StreamWriter) -> None:
    if said.hang:
        await asyncio.sleep(3600)
    while said.until and not said.until.is_set():
        await asyncio.sleep(0.01)
    if said.reset:
        writer.transport.abort()
        raise ConnectionResetError
    if said.status != 200 or said.body is not None:
        await asyncio.sleep(said.seconds)
        _send(writer, said.body if said.body is not None else _error(said), said)
    elif asked.body.get("stream") and not said.whole:
        await _stream(asked, said, writer)
    else:
        await asyncio.sleep(said.seconds)
        _send(writer, json.dumps(_completion(asked, said)), said)
    await writer.drain()


def _send(writer: asyncio.StreamWriter, body: str, said: Said) -> None:
    sent = body.encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(sent))}
    head = "".join(f"{name}: {value}\r\n" for name, value in (headers | said.headers).items())
    writer.write(f"HTTP/1.1 {said.status} Said\r\n{head}\r\n".encode() + sent)


async def _stream(asked: Asked, said: Said, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces = _pieces(said) if said.choices else []
    first = said.first_after if said.first_after is not None else said.seconds / (len(pieces) + 1)
    pause = (said.seconds - first) / max(len(pieces) - 1, 1)
    for place, piece in enumerate(pieces):
        await asyncio.sleep(first if place == 0 else pause)
        if place == said.cut_after:
            writer.transport.abort()
            raise ConnectionResetError
        delta = {"content": piece} | said.extra
        _event(writer, _chunk(asked, [{"index": 0, "delta": delta}]) | said.extra)
        await writer.drain()
    if not pieces:
        await asyncio.sleep(said.seconds)
    for call in said.tool_calls:
        _event(writer, _chunk(asked, [{"index": 0, "delta": {"tool_calls": [call]}}]))
    last: dict[str, Any] = {"refusal": said.refusal} if said.refusal else {}
    finish = said.finish or None
    choices = [{"index": 0, "delta": last, "finish_reason": finish}] if said.choices else []
    _event(writer, _chunk(asked, choices))
    # Told, as OpenAI does, to who asks for it.
    if said.usage and asked.body.get("stream_options", {}).get("include_usage"):
        _event(writer, _chunk(asked, []) | {"usage": _usage(asked, said)})
    if said.done:
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n")
    writer.write(b"0\r\n\r\n")


def _pieces(said: Said) -> list[str]:
    """The text in pieces of a few characters, as tokens are."""
    if said.pieces is not None:
        return said.pieces
    return [said.text[place : place + 6] for place in range(0, len(said.text), 6)]


def _event(writer: asyncio.StreamWriter, data: dict[str, Any]) -> None:
    sent = f"data: {json.dumps(data)}\n\n".encode()
    writer.write(f"{len(sent):x}\r\n".encode() + sent + b"\r\n")


def _chunk(asked: Asked, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": asked.body.get("model", ""),
        "choices": choices,
    }


def _completion(asked: Asked, said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said.text,
        "refusal": said.refusal or None,
    }
    if said.tool_calls:
        message["tool_calls"] = said.tool_calls
    choice = {"index": 0, "message": message | said.extra, "finish_reason": said.finish or None}
    told: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": asked.body.get("model", ""),
        "choices": [choice] if said.choices else [],
    }
    return told | said.extra | ({"usage": _usage(asked, said)} if said.usage else {})


def _usage(asked: Asked, said: Said) -> dict[str, int]:
    """Tokens, counted as four characters each."""
    sent = sum(len(str(message["content"])) for message in asked.body.get("messages", [])) // 4
    return {
        "prompt_tokens": sent,
        "completion_tokens": len(said.text) // 4,
        "total_tokens": sent + len(said.text) // 4,
    }


def _error(said: Said) -> str:
    return json.dumps({"error": {"message": f"scripted {said.status}", "type": "scripted"}})


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """Run a model server for the time of the block."""
    server = ModelServer(script).start()
    try:
        yield server
    finally:
        server.stop()
