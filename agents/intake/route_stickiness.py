"""Route stickiness: when a conversation stays on its route, and when it changes to another."""

from collections.abc import Sequence

from agents.attributes import Remark
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
}


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
