"""Fallback: says what can be helped with when no route fits."""

from collections.abc import Sequence

from django.conf import settings

from agents.contract import View, Writes, agent
from agents.intake.exemplars import votes
from agents.names import Role, Route
from agents.words import ENGLISH, Phrase, capabilities
from knowledge.errors import EmbeddingUnavailable


class Situation(View):
    """What the fallback reads: what was said, and the language and the routes to offer."""

    text: str = ""
    text_eng: str = ""
    language: str = ENGLISH
    enabled_routes: list[Route] = []


@agent(
    Role.FALLBACK,
    reads=Situation,
    writes=("response", "suggested_actions", "route_hint"),
)
def offer(view: Situation) -> Writes:
    """Name the routes that are open; hint at the one that the text may be about."""
    language = view.language
    routes = [route for route in view.enabled_routes if route is not Route.FALLBACK]
    actions = [Phrase[f"ROUTE_{route.name}"].in_language(language) for route in routes]
    actions.append(Phrase.SUGGEST_HELP.in_language(language))
    sentences = (
        Phrase.FALLBACK.in_language(language),
        capabilities(language, settings.DOMAIN_NAME),
    )
    return {
        "response": " ".join(sentences),
        "suggested_actions": actions,
        "route_hint": hint(view.text_eng or view.text, routes),
    }


def hint(text: str, routes: Sequence[Route]) -> Route | None:
    """Return the route that a text is nearest to; None when it is nearer to none of them."""
    kinds = {f"route_{route}": route for route in [*routes, Route.FALLBACK]}
    try:
        (kind_votes,) = votes([text], list(kinds))
    except EmbeddingUnavailable:
        return None
    best = kinds[max(kinds, key=lambda kind: kind_votes[kind])]
    return None if best is Route.FALLBACK else best
