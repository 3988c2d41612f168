"""Streams bench: whether who follows turns misses anything, and what a proxy delays."""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from assistant.lab.bench_inflight import QUESTION
from assistant.lab.model_server import Call, Response, serving
from assistant.lab.nginx import nginx
from assistant.lab.rehearsal import WITHOUT_CACHES
from assistant.lab.scripted_replies import Sensible
from assistant.lab.web_stack import UNLIMITED, Told, WebStack, begun, followed, spread, web_stack

# Is answered in three steps.
QUICK = "/help"
# Seconds in which a model writes an answer.
WRITING_SECONDS = 2.0
LAST = "workflow_complete"


@dataclass(frozen=True)
class Plan:
    """So many clients, each with so many turns; nginx, if its program is given."""

    clients: int
    turns: int
    thinking: int  # turns with a model, whose every event is resumed at
    nginx: str = ""


def measure(plan: Plan, progress: Callable[[str], Any]) -> dict[str, Any]:
    """Return the figures, with everything started for it. Raises NoWorkers."""
    progress("starting everything")
    with serving(_writing) as server, ExitStack() as opened:
        os.environ.update(
            UNLIMITED
            | WITHOUT_CACHES
            | {
                "GEN_MODEL": "fake@scripted",
                "ENRICHMENT_MODEL": "none",
                "SCRIPTED_BASE_URL": server.base_url,
                "ROUTES": "documentation",
            }
        )
        stack = opened.enter_context(web_stack())
        proxy = opened.enter_context(nginx(plan.nginx, stack.port)) if plan.nginx else 0
        return asyncio.run(_measured(stack, plan, proxy, progress))


def _writing(call: Call) -> Response:
    """Write answers slowly and all else at once."""
    return Sensible(WRITING_SECONDS if call.prompt == "response" else 0.0).reply(call)


async def _measured(
    stack: WebStack, plan: Plan, proxy: int, progress: Callable[[str], Any]
) -> dict[str, Any]:
    figures: dict[str, Any] = {"load_before": os.getloadavg()[0]}
    progress(f"{plan.clients} clients with {plan.turns} turns each")
    figures["followed"] = await _followed(stack, plan, stack.port)
    progress("resuming after every event")
    figures["resumed"] = await _resumed(stack, plan)
    if proxy:
        progress("through nginx")
        for name, encoding in (("nginx", "identity"), ("nginx_gzip", "gzip")):
            figures[name] = await _delays(stack, plan, proxy, encoding)
        few = Plan(plan.clients, max(plan.turns // 10, 1), 0)
        figures["followed_through_nginx"] = await _followed(stack, few, proxy)
    return figures | {"load_after": os.getloadavg()[0]}


async def _followed(stack: WebStack, plan: Plan, port: int) -> dict[str, Any]:
    """Have clients begin turns and follow each at once; count what they missed."""
    first: list[float] = []
    missed = {"first": 0, "last": 0, "order": 0, "steps": 0}

    async def client() -> None:
        async with stack.client(port) as web:
            for _ in range(plan.turns):
                turn = await begun(web, QUICK)
                taken = time.perf_counter()
                told = [each async for each in followed(web, turn["turn_id"])]
                first.append(told[0].at - taken if told else 0.0)
                names = [each.name for each in told] or [""]
                missed["first"] += names[0] != "workflow_start"
                missed["last"] += names[-1] != LAST
                missed["order"] += not _is_ordered(told)
                begun_steps, done = map(names.count, ("agent_start", "agent_complete"))
                missed["steps"] += begun_steps != done

    await asyncio.gather(*(client() for _ in range(plan.clients)))
    turns = plan.clients * plan.turns
    return {"turns": turns, "missed": missed, "first_event": spread(first)}


async def _resumed(stack: WebStack, plan: Plan) -> dict[str, Any]:
    """Leave after every event of a turn and come back: while it runs, and once it has ended."""
    resumed, different = 0, 0
    for number in range(plan.thinking):
        turn = (await begun(stack.web, QUESTION.format(f"r{number}")))["turn_id"]
        live: list[Told] = []
        while not live or live[-1].name != LAST:
            live.append(await _next(stack, turn, live[-1].id if live else ""))
        whole = [each async for each in followed(stack.web, turn)]
        different += _values(live) != _values(whole)
        for place, each in enumerate(whole[:-1]):
            rest = [told async for told in followed(stack.web, turn, each.id)]
            different += _values(rest) != _values(whole[place + 1 :])
        resumed += len(live) + len(whole) - 1
    return {"turns": plan.thinking, "resumed": resumed, "different": different}


async def _next(stack: WebStack, turn: str, after: str) -> Told:
    """Return the event after one, and leave."""
    following = followed(stack.web, turn, after)
    try:
        return await anext(following)
    finally:
        await following.aclose()  # type: ignore[attr-defined]


async def _delays(stack: WebStack, plan: Plan, proxy: int, encoding: str) -> dict[str, Any]:
    """Follow turns twice at the same time; return what each event took longer by the proxy."""
    later: dict[str, list[float]] = {"first_event": [], "token": [], "all": []}
    missing = 0
    async with stack.client(proxy) as web:
        for number in range(plan.thinking):
            turn = (await begun(stack.web, QUESTION.format(f"{encoding}{number}")))["turn_id"]
            direct, proxied = await asyncio.gather(
                _whole(stack.web, turn, "identity"), _whole(web, turn, encoding)
            )
            arrived = {each.id: each.at for each in proxied}
            missing += len(direct) - len(proxied)
            for place, each in enumerate(direct):
                delay = arrived[each.id] - each.at
                later["all"].append(delay)
                if place == 0:
                    later["first_event"].append(delay)
                elif each.name == "token":
                    later["token"].append(delay)
    return {name: spread(seconds) for name, seconds in later.items()} | {"missing": missing}


async def _whole(web: Any, turn: str, encoding: str) -> list[Told]:
    return [each async for each in followed(web, turn, "", encoding)]


def _is_ordered(told: list[Told]) -> bool:
    ids = [tuple(map(int, each.id.split("-"))) for each in told]
    return ids == sorted(set(ids))


def _values(told: list[Told]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(each.id, each.name, each.data) for each in told]


def table(figures: dict[str, Any]) -> Table:
    """Return what was missed, and how much later events came through a proxy."""
    rows = Table("", "figure", title="Followers of turns")
    rows.add_row("turns followed at once", str(figures["followed"]["turns"]))
    rows.add_row("missed first, last, order, steps", str(figures["followed"]["missed"]))
    rows.add_row("first event, ms", str(figures["followed"]["first_event"]))
    rows.add_row("connections that came back", str(figures["resumed"]["resumed"]))
    rows.add_row("of them told something else", str(figures["resumed"]["different"]))
    for name in ("nginx", "nginx_gzip"):
        for kind, seconds in figures.get(name, {}).items():
            rows.add_row(f"later through {name}, {kind}", str(seconds))
    if through := figures.get("followed_through_nginx"):
        rows.add_row("missed through nginx", f"{through['missed']} of {through['turns']}")
    rows.caption = f"load {figures['load_before']:.1f} to {figures['load_after']:.1f}"
    return rows
