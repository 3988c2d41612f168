"""Router: finds the route a question belongs to, by the exemplars near to it."""

import math

from agents.attributes import Reason
from agents.contract import View, Writes, agent
from agents.intake.exemplars import SHARPNESS, votes
from agents.intake.vagueness import VAGUE, vagueness
from agents.names import Role, Route
from agents.terms import content_words

# Below this the router does not know, and fallback says what can be asked.
KNOWN = 0.5
# What no exemplar is near to is most likely a question about the documents: their subject is not
# known here. As much as one exemplar at this cosine.
BENEFIT_OF_DOUBT = math.exp(SHARPNESS * (0.45 - 1))
TYPES = ("simple_search", "cross_doc", "compliance", "risk", "synthesis", "reporting")
# A type other than a simple search needs this many votes: one exemplar at a cosine of 0.55.
TYPE_KNOWN = math.exp(SHARPNESS * (0.55 - 1))
# Points of complexity, out of 100, for each term asked about and for what has to be combined.
PER_TERM = 6
COMBINING = 40


def _shares(question: str, routes: list[Route]) -> dict[Route, float]:
    """The share of the votes each route gets, summing to 1."""
    (found,) = votes([question], [f"route_{route}" for route in routes])
    weights = {route: found[f"route_{route}"] for route in routes}
    if Route.DOCUMENTATION in weights:
        weights[Route.DOCUMENTATION] += BENEFIT_OF_DOUBT
    total = sum(weights.values())
    return {route: weight / total if total else 0.0 for route, weight in weights.items()}


def _type(question: str) -> str:
    (found,) = votes([question], [f"query_{kind}" for kind in TYPES])
    best = max(TYPES, key=lambda kind: found[f"query_{kind}"])
    return best if found[f"query_{best}"] >= TYPE_KNOWN else TYPES[0]


@agent(
    Role.ROUTER,
    reads=("canonical_question", "history", "last_agent", "context_flags", "enabled_routes"),
    writes=(
        "route",
        "route_confidence",
        "route_analysis",
        "query_type",
        "complexity_score",
        "vagueness_score",
        "clarifying_questions",
    ),
)
def choose(view: View) -> Writes:
    """Choose among the enabled routes; what is too vague for any of them asks back."""
    question = view.canonical_question or ""
    routes = list(dict.fromkeys([*(view.enabled_routes or [Route.DOCUMENTATION]), Route.FALLBACK]))
    shares = _shares(question, routes)
    best = max(routes, key=lambda route: shares[route])
    kind = _type(question)
    vague = vagueness(question)
    points = PER_TERM * len(content_words(question)) + COMBINING * (kind != TYPES[0])
    writes: Writes = {
        "route": best if shares[best] >= KNOWN else Route.FALLBACK,
        "route_confidence": shares[best],
        "route_analysis": ", ".join(f"{route} {shares[route]:.2f}" for route in routes),
        "query_type": kind,
        "complexity_score": min(100, points),
        "vagueness_score": vague,
        "clarifying_questions": [],
    }
    if vague > VAGUE and best is not Route.FALLBACK and not view.history:
        writes |= {"needs_clarification": True, "clarification_reason": Reason.VAGUE_REQUEST}
    return writes
