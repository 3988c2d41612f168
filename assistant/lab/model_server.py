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
# Of English prose and of prompts in the tokenizers of the large providers: o200k_base counts 2.5 %
# fewer for the prompts of Docent.
CHARACTERS_A_TOKEN = 4


@dataclass
class Call:
    """One call as it arrived. Times are of `time.monotonic`."""

    path: str
    headers: Headers
    body: dict[str, Any]
    began: float
    ended: float | None = None
    left: float | None = None  # when who asked closed the connection before the end

    @property
    def prompt(self) -> str:
        """Name of the prompt that was sent, from the first line of the system message.

        The path of what is no chat, such as a look at the list of models.
        """
        if "messages" not in self.body:
            return self.path
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
class Response:
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
    then: Callable[[], None] | None = None  # done as soon as all of it is sent


Script = Callable[[Call], Response]


class ModelServer:
    """The server, in a thread of its own, on a free port of this machine."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.ledger: list[Call] = []
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
        return [call.prompt for call in self.ledger]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while call := await _received(reader):
                self.ledger.append(call)
                response = self.script(call)
                await _respond_unless_left(call, response, reader, writer)
                call.ended = time.monotonic()
                if response.then:
                    response.then()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Who asked went away, or this server does.
            pass
        finally:
            writer.close()


async def _received(reader: asyncio.StreamReader) -> Call | None:
    """Return the next call on a connection; None when it was closed."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Call(first.split(" ")[1], headers, json.loads(body or b"{}"), time.monotonic())


async def _respond_unless_left(
    call: Call, response: Response, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Respond for as long as somebody listens. Raises ConnectionError when they left."""
    responding = asyncio.ensure_future(_respond(call, response, writer))
    # Nobody sends the next request before the end of a reply.
    leaving = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({responding, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not responding.done():
            call.left = time.monotonic()
            raise ConnectionAbortedError
        responding.result()
    finally:
        responding.cancel()
        leaving.cancel()
        await asyncio.gather(responding, leaving, return_exceptions=True)


async def _respond(call: Call, response: Response, writer: asyncio.StreamWriter) -> None:
    if response.hang:
        await asyncio.sleep(3600)
    while response.until and not response.until.is_set():
        await asyncio.sleep(0.01)
    if response.reset:
        writer.transport.abort()
        raise ConnectionResetError
    if response.status != 200 or response.body is not None:
        await asyncio.sleep(response.seconds)
        _send(writer, response.body if response.body is not None else _error(response), response)
    elif call.body.get("stream") and not response.whole:
        await _stream(call, response, writer)
    else:
        await asyncio.sleep(response.seconds)
        _send(writer, json.dumps(_completion(call, response)), response)
    await writer.drain()


def _send(writer: asyncio.StreamWriter, body: str, response: Response) -> None:
    sent = body.encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(sent))}
    head = "".join(f"{name}: {value}\r\n" for name, value in (headers | response.headers).items())
    writer.write(f"HTTP/1.1 {response.status} Scripted\r\n{head}\r\n".encode() + sent)


async def _stream(call: Call, response: Response, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    pieces = _pieces(response) if response.choices else []
    first = (
        response.first_after
        if response.first_after is not None
        else response.seconds / (len(pieces) + 1)
    )
    pause = (response.seconds - first) / max(len(pieces) - 1, 1)
    for place, piece in enumerate(pieces):
        await asyncio.sleep(first if place == 0 else pause)
        if place == response.cut_after:
            writer.transport.abort()
            raise ConnectionResetError
        delta = {"content": piece} | response.extra
        _event(writer, _chunk(call, [{"index": 0, "delta": delta}]) | response.extra)
        await writer.drain()
    if not pieces:
        await asyncio.sleep(response.seconds)
    for tool_call in response.tool_calls:
        _event(writer, _chunk(call, [{"index": 0, "delta": {"tool_calls": [tool_call]}}]))
    last: dict[str, Any] = {"refusal": response.refusal} if response.refusal else {}
    finish = response.finish or None
    choices = [{"index": 0, "delta": last, "finish_reason": finish}] if response.choices else []
    _event(writer, _chunk(call, choices))
    # Told, as OpenAI does, to who asks for it.
    if response.usage and call.body.get("stream_options", {}).get("include_usage"):
        _event(writer, _chunk(call, []) | {"usage": _usage(call, response)})
    if response.done:
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n")
    writer.write(b"0\r\n\r\n")


def _pieces(response: Response) -> list[str]:
    """The text in pieces of a few characters, as tokens are."""
    if response.pieces is not None:
        return response.pieces
    return [response.text[place : place + 6] for place in range(0, len(response.text), 6)]


def _event(writer: asyncio.StreamWriter, data: dict[str, Any]) -> None:
    sent = f"data: {json.dumps(data)}\n\n".encode()
    writer.write(f"{len(sent):x}\r\n".encode() + sent + b"\r\n")


def _chunk(call: Call, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": call.body.get("model", ""),
        "choices": choices,
    }


def _completion(call: Call, response: Response) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": response.text,
        "refusal": response.refusal or None,
    }
    if response.tool_calls:
        message["tool_calls"] = response.tool_calls
    choice = {
        "index": 0,
        "message": message | response.extra,
        "finish_reason": response.finish or None,
    }
    completion: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": call.body.get("model", ""),
        "choices": [choice] if response.choices else [],
    }
    return (
        completion | response.extra | ({"usage": _usage(call, response)} if response.usage else {})
    )


def _usage(call: Call, response: Response) -> dict[str, int]:
    messages = call.body.get("messages", [])
    sent = sum(len(str(message["content"])) for message in messages) // CHARACTERS_A_TOKEN
    said = len(response.text) // CHARACTERS_A_TOKEN
    return {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}


def _error(response: Response) -> str:
    return json.dumps({"error": {"message": f"scripted {response.status}", "type": "scripted"}})


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """Run a model server for the time of the block."""
    server = ModelServer(script).start()
    try:
        yield server
    finally:
        server.stop()
