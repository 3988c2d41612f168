"""Router: finds the route a question belongs to, and how vague and complex it is."""

import math
import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field

from agents.analysis.shapes import QueryType
from agents.attributes import Persona, Reason, RefundForm, Remark, Unit
from agents.contract import View, Writes, llm_agent
from agents.intake.exemplars import SHARPNESS, votes
from agents.intake.route_likelihood import likelihoods, picked
from agents.intake.route_stickiness import favoured, last_route, next_route
from agents.llm.history import history_blocks
from agents.llm.model import Model
from agents.llm.schema import at_most
from agents.names import Role, Route
from agents.support.dialogue.utterance import Utterance
from agents.words import ENGLISH, content_words, terms
from prompts.prompt import Prompt

PROMPT = Prompt("router", "routes", "domain", "scope", "history", "last_route", "flags", "question")
with (Path(__file__).parent.parent / "routes.toml").open("rb") as file:
    MEANT_FOR: dict[str, str] = tomllib.load(file)
# Messages before the question that the model is shown.
SHOWN = 6
MOST_QUESTIONS, LONGEST_QUESTION = 3, 200
TYPES = ("simple_search", "cross_doc", "compliance", "risk", "synthesis", "reporting")
# A type other than a simple search needs this many votes: one exemplar at a cosine of 0.55.
TYPE_KNOWN = math.exp(SHARPNESS * (0.55 - 1))
# Points of complexity, out of 100, for each term asked about and for what has to be combined.
PER_TERM = 6
COMBINING = 40
# From here on asking back is better than searching for nothing in particular.
VAGUE = 0.6
VAGUELY_ASKED: Writes = {
    "needs_clarification": True,
    "clarification_reason": Reason.VAGUE_REQUEST,
    "clarification_message": "",
}


class Question(View):
    """What the router reads: the question, and where the conversation was before it."""

    canonical_question: str = ""
    text: str = ""
    text_eng: str = ""
    language: str = ENGLISH
    refund_form: RefundForm | None = None
    history: list[Remark] = []
    last_agent: str = ""
    context_flags: dict[str, bool] = {}
    enabled_routes: list[Route] = []
    assistant: Persona = Field(default_factory=Persona)


class Analysis(BaseModel):
    """What the model says of the question."""

    route_analysis: str
    route: Route
    confidence: Unit
    query_type: QueryType
    complexity_score: int = Field(ge=0, le=100)
    vagueness_score: Unit
    needs_clarification: bool
    clarifying_questions: list[str]


@llm_agent(
    Role.ROUTER,
    reads=Question,
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
def choose(view: Question, llm: Model) -> Writes:
    """Let the model analyse the question in one call; which route it takes is settled here."""
    routes, last = _routes(view), _last_route(view)
    analysis = llm.ask(
        PROMPT,
        Analysis,
        routes=described(routes),
        domain=view.assistant.domain_name,
        scope=view.assistant.domain_scope,
        history=history_blocks(view.history[-SHOWN:]),
        last_route=last or "",
        flags=", ".join(sorted(name for name, on in view.context_flags.items() if on)),
        question=view.canonical_question,
    )
    confidence = favoured(analysis.route, analysis.confidence, view.context_flags)
    route = next_route(analysis.route, confidence, routes, last)
    stays = "" if route is analysis.route else f" (proposed {analysis.route}, taken {route})"
    asks = analysis.needs_clarification and analysis.vagueness_score > VAGUE
    asks = asks and route is not Route.FALLBACK
    questions = at_most(analysis.clarifying_questions, MOST_QUESTIONS, LONGEST_QUESTION)
    writes: Writes = {
        "route": route,
        "route_confidence": confidence,
        "route_analysis": analysis.route_analysis + stays,
        "query_type": analysis.query_type,
        "complexity_score": analysis.complexity_score,
        "vagueness_score": analysis.vagueness_score,
        "clarifying_questions": questions if asks else [],
    }
    return writes | (VAGUELY_ASKED if asks else {})


@choose.without_model
def weigh(view: Question) -> Writes:
    """Choose among the enabled routes; what is too vague for any of them asks back."""
    question = view.canonical_question
    routes = _routes(view)
    shares = _shares(view, routes)
    best = max(routes, key=lambda route: shares[route])
    confidence = favoured(best, shares[best], view.context_flags)
    route = next_route(best, confidence, routes, _last_route(view))
    kind = _type(question)
    # One word that carries meaning may be enough: essence looks whether the documents tell.
    vague = 1 / (1 + len(terms(question)))
    points = PER_TERM * len(content_words(question)) + COMBINING * (kind != TYPES[0])
    writes: Writes = {
        "route": route,
        "route_confidence": confidence,
        "route_analysis": ", ".join(f"{each} {shares[each]:.2f}" for each in routes),
        "query_type": kind,
        "complexity_score": min(100, points),
        "vagueness_score": vague,
        "clarifying_questions": [],
    }
    asks = vague > VAGUE and route is not Route.FALLBACK and not view.history
    return writes | (VAGUELY_ASKED if asks else {})


def _shares(view: Question, routes: Sequence[Route]) -> dict[Route, float]:
    """How likely each route is; why money is wanted back is billing's, if that has just asked."""
    said = Utterance(view.text, view.text_eng, view.language)
    if Route.BILLING in routes and said.answers(view.refund_form):
        return {route: float(route is Route.BILLING) for route in routes}
    # A button stands for itself, whatever question essence puts before it.
    text = view.text if picked(view.text) else view.canonical_question
    return likelihoods(text, routes)


def described(routes: Sequence[Route]) -> str:
    """Return the routes with what each is for, a line each."""
    return "\n".join(f"- `{route}`: {MEANT_FOR[route]}" for route in routes)


def _routes(view: Question) -> list[Route]:
    """The routes to choose from; fallback is always there."""
    return list(dict.fromkeys([*(view.enabled_routes or [Route.DOCUMENTATION]), Route.FALLBACK]))


def _last_route(view: Question) -> Route | None:
    return last_route(view.last_agent, view.history)


def _type(question: str) -> str:
    (kind_votes,) = votes([question], [f"query_{kind}" for kind in TYPES])
    best = max(TYPES, key=lambda kind: kind_votes[f"query_{kind}"])
    return best if kind_votes[f"query_{best}"] >= TYPE_KNOWN else TYPES[0]
