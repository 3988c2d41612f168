"""Client: one attempt at one provider over HTTP."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, aclosing, suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import Any

import openai
from httpx2 import AsyncByteStream, HTTPError, Response, Timeout, TimeoutException

from agents.llm import dialects, failures
from agents.llm.assembly import DONE, Assembly, Overlong, nothing, parts
from agents.llm.degeneration import Watch
from agents.llm.dialects import Dialect
from agents.llm.outcomes import ModelFailure, Outcome
from agents.llm.requests import EXCESS, Reply, Request
from agents.llm.stops import STOPS, TurnEnded
from knowledge.providers import Provider, UnknownProvider, parse_full_model_name, provider

CONNECT_SECONDS = 5.0
DRAIN_SECONDS = 0.1
# The status of a refusal that may name a part of the request the server does not take.
CHOOSY = frozenset({400, 422, 501})
# Bytes that are read of a refusal.
LONGEST_REFUSAL = 1_000_000
OnText = Callable[[str], None]


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    return loop


_loop = _started()
# Connections that are read out, of replies that are there: who asks next may use them again.
_draining: set[asyncio.Task[None]] = set()


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
        http_client=openai.DefaultAsyncHttpxClient(
            # Another address than the one that was set gets neither prompt nor key.
            follow_redirects=False,
            event_hooks={"response": [_cap]},
        ),
    )


class _Beginning(AsyncByteStream):
    """A body up to a length."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LONGEST_REFUSAL
        async for chunk in self.stream:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                break

    async def aclose(self) -> None:
        await self.stream.aclose()


async def _cap(response: Response) -> None:
    """Have a refusal read as far as it can be of use: it is read as a whole."""
    if response.status_code != 200:
        response.stream = _Beginning(response.stream)


def _restart() -> None:
    """A forked process has neither the loop's thread nor its connections."""
    global _loop
    _loop = _started()
    _draining.clear()
    _client.cache_clear()


os.register_at_fork(after_in_child=_restart)


def send(
    request: Request,
    *,
    seconds: float,
    begin: float | None = None,
    on_text: OnText | None = None,
    on_void: Callable[[], None] = nothing,
    turn: Any = None,
) -> Reply:
    """Return the reply of one attempt, there as a whole within `seconds`.

    Raises ModelFailure, and TurnEnded as soon as the turn has ended that it is for: the connection
    is closed then, so that the provider writes no further.

    `begin` is within how many seconds something of it must have arrived. `on_text` is handed every
    piece of the reply while it arrives, in the calling thread, and `on_void` is told there when
    those so far are none. A reply that is not worth reading on says so by its `finish_reason`.
    """
    told: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    assembly = Assembly(
        lambda text: told.put(partial(on_text, text) if on_text else nothing),
        lambda: told.put(on_void),
        Watch(request),
    )
    future = asyncio.run_coroutine_threadsafe(
        _send_within(request, seconds, begin or seconds, assembly), _loop
    )
    future.add_done_callback(lambda _: told.put(None))
    try:
        with STOPS.heeded(turn, future.cancel):
            # Who follows a turn that has ended is told nothing more.
            while (tell := told.get()) is not None and not future.cancelled():
                tell()
            return future.result()
    except CancelledError as error:
        raise TurnEnded from error
    finally:
        future.cancel()


async def _send_within(request: Request, seconds: float, begin: float, assembly: Assembly) -> Reply:
    try:
        name, provider_name = parse_full_model_name(request.model)
        server = provider(provider_name)
    except UnknownProvider as error:
        raise ModelFailure(Outcome.MODEL_MISSING, str(error)) from error
    if server.lacks_key:
        raise failures.without_key(request.model, server)
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
    return dialect.without(failures.refusal(error), request)


async def _post(
    request: Request,
    parameters: dict[str, Any],
    server: Provider,
    assembly: Assembly,
    seconds: float,
) -> None:
    """Send one HTTP request and add what comes back to the assembly.

    What follows the end of a reply is read without it: until a reply is stored, a killed worker
    costs it.
    """
    if _draining:
        await asyncio.wait([*_draining])
    timeout = Timeout(seconds, connect=CONNECT_SECONDS)
    ask: Any = _client(server).chat.completions.with_streaming_response.create
    try:
        async with AsyncExitStack() as open_reply:
            response = await open_reply.enter_async_context(ask(**parameters, timeout=timeout))
            chunks = response.iter_bytes()
            if await _read(chunks, request.model, server, assembly):
                task = asyncio.create_task(_drain(chunks, open_reply.pop_all()))
                _draining.add(task)
                task.add_done_callback(_draining.discard)
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
) -> bool:
    """Add what arrives to the assembly; return whether it came to its end."""
    part, has_choices, done = b"", False, False
    try:
        async with aclosing(parts(chunks)) as events:
            async for part in events:
                if done := part == DONE:
                    break
                values = _values(part, model, server)
                if error := values.get("error"):
                    raise failures.of_error_in_reply(error, model, server)
                has_choices = has_choices or "choices" in values
                assembly.add(values)
                if assembly.is_stopped:
                    return False
    except Overlong:
        assembly.stop(EXCESS)
        return False
    if part and not has_choices:
        raise failures.no_completion(part.decode(errors="replace"), model, server)
    if assembly.finish == "error" or not (done or assembly.finish):
        raise failures.broken_off(EOFError("no end of it came"), model, server)
    return True


async def _drain(chunks: AsyncIterator[bytes], open_reply: AsyncExitStack) -> None:
    """Read what follows the end: a connection that was read out can be used again."""
    async with open_reply:
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
