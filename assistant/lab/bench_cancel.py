"""Cancel bench: how soon a cancelled turn has ended for everybody: clients, askers and models."""

import asyncio
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from agents.names import Status
from assistant.lab.bench_inflight import COLLECTION
from assistant.lab.model_server import Call, ModelServer, Response, serving
from assistant.lab.rehearsal import WITHOUT_CACHES
from assistant.lab.scripted_replies import Sensible
from assistant.lab.web_stack import UNLIMITED, WebStack, begun, followed, spread, web_stack

SLOW_SECONDS = 100.0
PATIENCE_SECONDS = 20.0
LOOK_SECONDS = 0.002
# That a reply has begun to arrive when it is cancelled.
BEGUN_SECONDS = 0.3
PLAIN = "How often do I have to descale the heater of machine {}?"
# What has each role ask its model; some are asked about difficult questions alone.
QUESTIONS = {
    "translation": "¿Con qué frecuencia tengo que descalcificar el calentador de la máquina {}?",
    "essence": "And how is that of machine {} cleaned?",
    "guardrails": PLAIN,
    "router": PLAIN,
    "evaluator": "Compare the heater with the grinder of machine {}: how many weeks for each?",
    "response": PLAIN,
    "quality": PLAIN,
}
MEASURED = ("cancel", "stream", "asker", "model")


@dataclass
class Slow:
    """A script that is sensible, and very slow for one prompt."""

    prompt: str = ""

    def reply(self, call: Call) -> Response:
        """Return what is said to a call."""
        said = Sensible().reply(call)
        if call.prompt != self.prompt:
            return said
        return replace(said, seconds=SLOW_SECONDS, first_after=0.05, pieces=[*said.text])


def measure(rounds: int, progress: Callable[[str], Any]) -> dict[str, Any]:
    """Return how long each took after a cancel, by the role whose model worked."""
    progress("starting everything")
    slow = Slow()
    with serving(slow.reply) as server:
        os.environ.update(
            UNLIMITED
            | WITHOUT_CACHES
            | {
                "GEN_MODEL": "fake@scripted",
                "ENRICHMENT_MODEL": "none",
                "SCRIPTED_BASE_URL": server.base_url,
                "ROUTES": "documentation,billing",
            }
        )
        with web_stack() as stack:
            return asyncio.run(_measured(stack, slow, server, rounds, progress))


async def _measured(
    stack: WebStack,
    slow: Slow,
    server: ModelServer,
    rounds: int,
    progress: Callable[[str], Any],
) -> dict[str, Any]:
    figures: dict[str, Any] = {"load_before": os.getloadavg()[0], "roles": {}}
    total: dict[str, list[float]] = defaultdict(list)
    for role, question in QUESTIONS.items():
        found: dict[str, list[float]] = defaultdict(list)
        for number in range(rounds):
            progress(f"{role}, {number + 1} of {rounds}")
            slow.prompt = role
            for name, seconds in (await _cancelled(stack, slow, server, role, question)).items():
                found[name].append(seconds)
                total[name].append(seconds)
        figures["roles"][role] = {name: spread(found[name]) for name in MEASURED if found[name]}
    figures["all"] = {name: spread(total[name]) for name in MEASURED}
    figures["cancelled"] = len(total["cancel"])
    return figures | {"load_after": os.getloadavg()[0]}


async def _cancelled(
    stack: WebStack, slow: Slow, server: ModelServer, role: str, question: str
) -> dict[str, float]:
    """Cancel a turn in the midst of a call; return the seconds until each had ended.

    Nothing where no model was asked for the role.
    """
    server.ledger.clear()
    session, text = f"cancel-{uuid.uuid4()}", question.format(uuid.uuid4().hex[:6])
    if role == "essence":
        slow.prompt = ""
        first = await begun(stack.web, PLAIN.format("A"), session_id=session)
        await _end(stack, first["turn_id"])
        server.ledger.clear()
        slow.prompt = role
    body = {"message": text, "collections": [COLLECTION], "session_id": session, "wait": False}
    headers = {"Idempotency-Key": session}
    taken = await stack.web.post("/api/chat/", json=body, headers=headers)
    turn = taken.json()["turn_id"]
    streamed = asyncio.ensure_future(_end(stack, turn))
    # Sent again, a message is waited for and not asked again.
    asker = asyncio.ensure_future(_asker(stack, body | {"wait": True}, headers))
    call = await _call(server, role, streamed)
    if call is None:
        asker.cancel()
        return {}
    await asyncio.sleep(BEGUN_SECONDS)
    began = time.perf_counter()
    answer = (await stack.web.post(f"/api/turns/{turn}/cancel/")).json()
    told = time.perf_counter()
    if answer["status"] != Status.CANCELLED:
        raise RuntimeError(f"The turn was not cancelled: {answer['status']}")
    until = time.perf_counter() + PATIENCE_SECONDS
    while call.left is None and time.perf_counter() < until:
        await asyncio.sleep(LOOK_SECONDS)
    ends = {"stream": await streamed, "asker": await asker, "model": call.left or until}
    return {name: at - began for name, at in ({"cancel": told} | ends).items()}


async def _call(server: ModelServer, role: str, streamed: "asyncio.Future[float]") -> Call | None:
    """Return the call of the role; None when the turn has ended without one."""
    while not streamed.done():
        # By a list of its own: the server adds to it.
        if found := [call for call in list(server.ledger) if call.prompt == role]:
            return found[0]
        await asyncio.sleep(LOOK_SECONDS)
    return None


async def _end(stack: WebStack, turn: str) -> float:
    """Return when a turn's stream told of its end."""
    async for told in followed(stack.web, turn):
        if told.name == "workflow_complete":
            return told.at
    raise RuntimeError("A stream ended before its turn.")


async def _asker(stack: WebStack, body: dict[str, Any], headers: dict[str, str]) -> float:
    await stack.web.post("/api/chat/", json=body, headers=headers)
    return time.perf_counter()


def table(figures: dict[str, Any]) -> Table:
    """Return milliseconds after the request to cancel."""
    title = f"Milliseconds after a cancel, {figures['cancelled']} turns: p50 / p95 / max"
    rows = Table("model at work for", "cancel answered", "stream", "asker", "model", title=title)
    for role, found in (*figures["roles"].items(), ("all", figures["all"])):
        cells = [" / ".join(map(str, found[name].values())) if found else "" for name in MEASURED]
        rows.add_row(role, *(cells if found else ("not asked", "", "", "")))
    rows.caption = f"load {figures['load_before']:.1f} to {figures['load_after']:.1f}"
    return rows
