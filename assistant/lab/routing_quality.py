"""Routing quality: how often a first message is sent to the route that it belongs to."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from pydantic import Field
from rich.console import RenderableType
from rich.table import Table

from agents.intake.router import choose
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.names import Role, Route
from assistant.lab.judged_data import Line, all_lines
from assistant.lab.measures import digits

Watch = Callable[[int, int], None]  # told how many messages are routed, of how many


class Routed(Line):
    """What somebody might type, and the route that it belongs to."""

    text: str = Field(min_length=1)
    route: Route


def messages_of(path: Path) -> list[Routed]:
    """Return the messages of the file. Raises Unjudgeable, which names the line."""
    return all_lines(path, Routed, "message")


def evaluate(messages: Sequence[Routed], watch: Watch | None = None) -> dict[str, Any]:
    """Route each message as a first one, with every route open that any of them belongs to.

    `accuracy` is the share that took its route, `fallback` the share that took none;
    `by_route` has `{"messages", "found", "right"}` for each route: how many belong to it, the
    share of them that took it, and the share right of those that took it. `taken_for` counts the
    mistakes. With the router's model if one is configured. A share of nothing is None.
    """
    routes = [route for route in Route if any(each.route is route for each in messages)]
    pairs: Counter[tuple[Route, Route]] = Counter()
    for place, message in enumerate(messages, start=1):
        pairs[message.route, routed(message.text, routes)] += 1
        if watch:
            watch(place, len(messages))
    taken = Counter[Route]()
    for (_, route), times in pairs.items():
        taken[route] += times
    count = Counter(message.route for message in messages)
    return {
        "messages": len(messages),
        "accuracy": sum(pairs[route, route] for route in routes) / len(messages),
        "fallback": taken[Route.FALLBACK] / len(messages),
        "by_route": {
            str(route): {
                "messages": count[route],
                "found": _share(pairs[route, route], count[route]),
                "right": _share(pairs[route, route], taken[route]),
            }
            for route in routes
        },
        "taken_for": {
            f"{route} for {right}": times
            for (right, route), times in pairs.most_common()
            if right is not route
        },
    }


def routed(text: str, routes: Sequence[Route]) -> Route:
    """Return the route that a first message takes where these are open."""
    payload = {"canonical_question": text, "enabled_routes": [str(route) for route in routes]}
    choice = settings.MODELS.get(Role.ROUTER.value)
    subject = Subject(f"evaluation/{uuid4().hex}", Role.ROUTER.value)
    llm = Model(choice, subject) if choice and choice.model else None
    return Route(choose.perform(payload, llm).writes["route"])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def table(figures: dict[str, Any]) -> RenderableType:
    """Return a line for each route."""
    rows = Table(
        "", "messages", "found", "right of those sent there",
        title=f"{figures['messages']:,} messages; right {digits(figures['accuracy'])}, "
        f"sent nowhere {digits(figures['fallback'])}",
        title_justify="left",
    )  # fmt: skip
    for route, shares in figures["by_route"].items():
        rows.add_row(
            route, str(shares["messages"]), digits(shares["found"]), digits(shares["right"])
        )
    return rows
