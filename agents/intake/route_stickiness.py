"""Route stickiness: when a conversation stays on its route, and when it changes to another."""

from collections.abc import Mapping, Sequence

from agents.attributes import REFUND_IN_PROGRESS, Remark
from agents.names import Role, Route

# From here on a question changes the route, and without a route before it takes one.
SURE = 0.7
LIKELY = 0.5
RECENT = 4
# Whose words ended the last turn tells its route; other roles speak on any route or on none.
ROUTE_OF: dict[str, Route] = {
    Role.SEARCH: Route.DOCUMENTATION,
    Role.EVALUATOR: Route.DOCUMENTATION,
    Role.AUGMENTATION: Route.DOCUMENTATION,
    Role.RESPONSE: Route.DOCUMENTATION,
    Role.QUALITY: Route.DOCUMENTATION,
    Role.ORCHESTRATOR: Route.ANALYSIS,
}
# What goes on in a conversation favours the route it belongs to by so much confidence, up or down.
FAVOURED: dict[str, Route] = {REFUND_IN_PROGRESS: Route.BILLING}
FAVOUR = 0.15


def is_on_route(role: str) -> bool:
    """Tell whether the words of the role belong to a route."""
    return role in set(Route) or role in ROUTE_OF


def last_route(last_agent: str, history: Sequence[Remark]) -> Route | None:
    """Return the route the conversation is on: None when it begins, or was on none.

    `last_agent` is a role that spoke on a route, or a route itself.
    """
    if not any(remark.role == "assistant" for remark in history[-RECENT:]):
        return None
    route = Route(last_agent) if last_agent in set(Route) else ROUTE_OF.get(last_agent)
    return None if route is Route.FALLBACK else route


def favoured(proposed: Route, confidence: float, flags: Mapping[str, bool]) -> float:
    """Return how sure a proposal is where these flags of the conversation are set, 0 to 1."""
    routes = {route for flag, route in FAVOURED.items() if flags.get(flag)}
    if not routes:
        return confidence
    return min(1.0, max(0.0, confidence + (FAVOUR if proposed in routes else -FAVOUR)))


def next_route(
    proposed: Route, confidence: float, enabled: Sequence[Route], last: Route | None
) -> Route:
    """Return the route to take.

    A sure proposal is followed, from whichever route; an unsure one stays where the conversation
    is; at its beginning a likely one is followed. Everything else is fallback's.
    """
    is_enabled = proposed in enabled and proposed is not Route.FALLBACK
    if is_enabled and confidence >= SURE:
        return proposed
    if last and last in enabled and confidence < SURE:
        return last
    if is_enabled and confidence >= LIKELY:
        return proposed
    return Route.FALLBACK
