"""Transport: one attempt at one provider over HTTP, through the `openai` package.

Imported only when a model is asked: the client takes 40 MB of every process. The requests of all
threads run on one event loop, because only there a time limit holds for the whole of a reply: a
socket's own starts anew with every byte that drips in.
"""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import openai
from httpx2 import HTTPError, Timeout, TimeoutException

from agents.llm import dialects, failures
from agents.llm.assembly import DONE, Assembly, parts
from agents.llm.dialects import Dialect
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import Reply, Request
from knowledge.providers import Provider, UnknownProvider, provider, split

OnText = Callable[[str], None]
CONNECT_SECONDS = 5.0
DRAIN_SECONDS = 0.1
# The status of a refusal that may name a part of the request the server does not take.
CHOOSY = frozenset({400, 422, 501})


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
    asked = asyncio.run_coroutine_threadsafe(
        _within(request, seconds, begin or seconds, pieces.put), _loop
    )
    asked.add_done_callback(lambda _: pieces.put(None))
    try:
        while (piece := pieces.get()) is not None:
            if on_text:
                on_text(piece)
        return asked.result()
    finally:
        asked.cancel()


async def _within(request: Request, seconds: float, begin: float, tell: OnText) -> Reply:
    try:
        name, where = split(request.model)
        server = provider(where)
    except UnknownProvider as error:
        raise ModelFailure(Outcome.MODEL_MISSING, str(error)) from error
    if server.lacks_key:
        raise failures.without_key(request.model, server)
    assembly = Assembly(tell)
    end = asyncio.get_running_loop().time() + seconds
    try:
        async with asyncio.timeout(begin) as limit:
            assembly.on_begin = partial(limit.reschedule, end)
            return await _spoken(request, name, server, assembly, seconds)
    except TimeoutError as error:
        if begin < seconds and not assembly.has_begun:
            raise failures.not_begun(request.model, begin) from error
        said = len(assembly.text)
        raise failures.too_late(request.model, seconds, said) from error


async def _spoken(
    request: Request, name: str, server: Provider, assembly: Assembly, seconds: float
) -> Reply:
    """Ask, in ever plainer words as long as the server names what it does not take."""
    dialect = known = dialects.of(server, name)
    while True:
        try:
            await _asked(request, dialect.parameters(name, request), server, assembly, seconds)
        except openai.APIStatusError as error:
            if failures.filtered(error):
                return Reply("", "content_filter", model=request.model)
            plainer = _plainer(dialect, error, request)
            if plainer is None:
                raise failures.answered(error, request.model, server) from error
            dialect = plainer
        else:
            if dialect != known:
                dialects.learn(server, name, dialect)
            return assembly.reply(request.model)


def _plainer(dialect: Dialect, error: openai.APIStatusError, request: Request) -> Dialect | None:
    if error.status_code not in CHOOSY:
        return None
    return dialect.without(failures.refusal(error), shaped=bool(request.schema))


async def _asked(
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
        if isinstance(error, openai.APITimeoutError) and not failures.unconnected(error):
            raise TimeoutError from error
        raise failures.unreached(error, request.model, server) from error
    except TimeoutException as error:
        raise TimeoutError from error
    except HTTPError as error:
        raise failures.broken_off(error, request.model, server) from error


async def _read(
    chunks: AsyncIterator[bytes], model: str, server: Provider, assembly: Assembly
) -> None:
    part, chosen, done = b"", False, False
    async with aclosing(parts(chunks)) as told:
        async for part in told:
            if done := part == DONE:
                break
            values = _values(part, model, server)
            if error := values.get("error"):
                raise failures.within(error, model, server)
            chosen = chosen or "choices" in values
            assembly.add(values)
    if part and not chosen:
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
