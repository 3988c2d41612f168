"""Fallback: says what can be helped with when no route fits."""

from django.conf import settings

from agents.contract import View, Writes, agent
from agents.names import Role, Route
from agents.words import ENGLISH, Phrase, capabilities


class Situation(View):
    """What the fallback reads: the language to answer in, and what there is to offer."""

    language: str = ENGLISH
    enabled_routes: list[Route] = []


@agent(
    Role.FALLBACK,
    reads=Situation,
    writes=("response", "suggested_actions", "route_hint"),
)
def offer(view: Situation) -> Writes:
    """Name the routes that are open; hint at the one to try next."""
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
        "route_hint": routes[0] if routes else None,
    }
