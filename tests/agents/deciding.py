"""Deciding: what the routing table says of a payload."""

from typing import Any

from agents.decision import Decision, Stage
from agents.names import Route
from agents.routing import decide

ONE_ROUTE = [Route.DOCUMENTATION]
TWO_ROUTES = [Route.DOCUMENTATION, Route.FALLBACK]


def asked(reason: str = "vague_request") -> dict[str, str]:
    return {"reason": reason, "message": ""}


def after(stage: Stage, **payload: Any) -> Decision:
    """Return the decision after a stage, with one route unless others are named."""
    return decide({"stage": stage, "enabled_routes": ONE_ROUTE, "text": "?"} | payload)
