"""Load bench: many clients over HTTP, crowds that ask at once, and what is asked beside them."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from rich.table import Table

from assistant.lab.bench_inflight import COLLECTION, QUESTION, megabytes
from assistant.lab.web_stack import HOST, UNLIMITED, Answered, WebStack, asked, spread, web_stack
from assistant.local.processes import Child

PROBE_SECONDS = 0.25
# Whose questions take turns.
USERS = 50
SETTLE_SECONDS = 3.0
ALONE = 10  # questions of one client, before and after
HALF_A_REQUEST = b"POST /api/chat/ HTTP/1.1\r\nHost: docent\r\nContent-Le"
# Which take quotes and lists for what they look like: minutes, without limits.
HOSTILE = {
    "quotes.md": b"# Quotes\n\n" + b">" * 100_000 + b" deep",
    "lists.md": b"# Lists\n\n" + b"".join(b"  " * n + b"- deep\n" for n in range(3000)),
}
NUMBERS = count(1)


@dataclass(frozen=True)
class Plan:
    """So many clients for so many seconds, these crowds, and so many half-sent requests."""

    clients: int
    seconds: float
    crowds: tuple[int, ...]
    half_sent: int


def measure(plan: Plan, progress: Callable[[str], Any]) -> dict[str, Any]:
    """Return the figures, with everything started for it. Raises NoWorkers."""
    progress("starting everything")
    # How quick this machine is says nothing about whether a crowd is answered.
    os.environ.update(UNLIMITED | {"TURN_DEADLINE_SECONDS": "900", "ROUTES": "documentation"})
    with web_stack(USERS) as stack:
        return asyncio.run(_measured(stack, plan, progress))


async def _measured(stack: WebStack, plan: Plan, progress: Callable[[str], Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {"load_before": os.getloadavg()[0], "memory": {}}
    memory = figures["memory"]
    await _one_client(stack)
    progress("one client alone")
    figures["alone"] = _figures(await _one_client(stack))
    memory["before"] = _memory(stack.children)
    progress(f"one client beside {plan.half_sent} half-sent requests")
    async with _half_sent(stack, plan.half_sent) as still_open:
        figures["beside_half_sent"] = _figures(await _one_client(stack))
        figures["half_sent_open"] = still_open()
        await asyncio.sleep(12)
        figures["half_sent_open_after_12_s"] = still_open()
    progress(f"{plan.clients} clients for {plan.seconds:.0f} s")
    figures["clients"] = await _watched(stack, _clients(stack, plan))
    memory["after_clients"] = _memory(stack.children)
    progress(f"{plan.clients} clients for {plan.seconds:.0f} s beside hostile documents")
    async with _taking_in(stack):
        figures["clients_beside_document"] = await _watched(stack, _clients(stack, plan))
    memory["after_document"] = _memory(stack.children)
    for crowd in plan.crowds:
        progress(f"{crowd} questions at once")
        questions = (_question(stack) for _ in range(crowd))
        figures[f"crowd_of_{crowd}"] = await _watched(stack, _all(questions))
    await asyncio.sleep(SETTLE_SECONDS)
    memory["after_crowds"] = _memory(stack.children)
    figures["load_after"] = os.getloadavg()[0]
    pair = figures["clients_beside_document"], figures["clients"]
    figures["ratio_beside_document"] = round(pair[0]["p95"] / max(pair[1]["p95"], 1), 2)
    return figures


async def _question(stack: WebStack) -> Answered:
    """Ask what nobody asked before, on a connection of its own."""
    number = next(NUMBERS)
    text = QUESTION.format(f"{os.getpid()}-{number}")
    body = {"message": text, "collections": [COLLECTION]}
    key = stack.keys[number % len(stack.keys)]
    return await asked(stack.web, "POST", "/api/chat/", body, key)


async def _one_client(stack: WebStack) -> list[Answered]:
    return [await _question(stack) for _ in range(ALONE)]


async def _all(questions: Any) -> list[Answered]:
    return list(await asyncio.gather(*questions))


async def _clients(stack: WebStack, plan: Plan) -> list[Answered]:
    """Let each client ask again as soon as it is answered, and wait when it is told to."""
    end = time.monotonic() + plan.seconds

    async def client() -> list[Answered]:
        answers = []
        while time.monotonic() < end:
            answers.append(await _question(stack))
            await asyncio.sleep(float(answers[-1].retry_after or 0))
        return answers

    every = await asyncio.gather(*(client() for _ in range(plan.clients)))
    return [answer for answers in every for answer in answers]


async def _watched(stack: WebStack, answering: Any) -> dict[str, Any]:
    """Return the figures of answers, and how long /healthz took meanwhile."""
    alive: list[Answered] = []

    async def probe() -> None:
        while True:
            alive.append(await asked(stack.web, "GET", "/healthz"))
            await asyncio.sleep(PROBE_SECONDS)

    probing = asyncio.ensure_future(probe())
    try:
        began = time.perf_counter()
        answers = await answering
        seconds = time.perf_counter() - began
    finally:
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
    return _figures(answers) | {
        "a_second": round(len(answers) / seconds, 2),
        "healthz": spread([each.seconds for each in alive]),
        "healthz_failed": sum(each.status != 200 for each in alive),
    }


def _figures(answers: list[Answered]) -> dict[str, Any]:
    ended = Counter(each.body["status"] for each in answers if each.status == 200)
    return {
        "asked": len(answers),
        "statuses": dict(Counter(str(each.status) for each in answers)),
        "unfair": sum(not each.is_fair for each in answers),
        "ended": dict(ended),
        **spread([each.seconds for each in answers if each.status == 200]),
    }


@asynccontextmanager
async def _half_sent(stack: WebStack, number: int) -> AsyncIterator[Callable[[], int]]:
    """Have so many requests begun and not gone on with; what is yielded counts those open."""
    pairs = [await asyncio.open_connection(HOST, stack.port) for _ in range(number)]
    for _, writer in pairs:
        writer.write(HALF_A_REQUEST)
    ends = [asyncio.ensure_future(reader.read()) for reader, _ in pairs]
    try:
        yield lambda: sum(not end.done() for end in ends)
    finally:
        for end, (_, writer) in zip(ends, pairs, strict=True):
            end.cancel()
            writer.close()


@asynccontextmanager
async def _taking_in(stack: WebStack) -> AsyncIterator[None]:
    """Have hostile documents taken in, for as long as the block lasts."""

    async def upload() -> None:
        while True:
            for name, content in HOSTILE.items():
                marked = content + b"\n\n%d\n" % next(NUMBERS)
                data = {"collection": "hostile", "wait": "false"}
                await stack.web.post("/api/documents/", files={"file": (name, marked)}, data=data)
            await asyncio.sleep(10)

    uploading = asyncio.ensure_future(upload())
    await asyncio.sleep(1)
    try:
        yield
    finally:
        uploading.cancel()
        with suppress(asyncio.CancelledError):
            await uploading


def _memory(children: list[Child]) -> dict[str, int]:
    """Return what each process holds, in MB (PSS)."""
    return {
        child.name: round(megabytes({child.process.pid})) for child in children if child.process
    }


def table(figures: dict[str, Any]) -> Table:
    """Return how each crowd fared."""
    rows = Table("", "asked", "statuses", "unfair", "p50 ms", "p95 ms", "max ms", "/healthz max ms")
    for name, each in figures.items():
        if isinstance(each, dict) and "asked" in each:
            healthz = each.get("healthz", {}).get("max", "")
            cells = (each["asked"], each["statuses"], each["unfair"])
            rows.add_row(name, *map(str, (*cells, each["p50"], each["p95"], each["max"], healthz)))
    rows.caption = (
        f"memory {figures['memory']}; half-sent requests open "
        f"{figures['half_sent_open']}, after 12 s {figures['half_sent_open_after_12_s']}; "
        f"load {figures['load_before']:.1f} to {figures['load_after']:.1f}"
    )
    return rows
