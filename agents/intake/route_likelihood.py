"""Route likelihood: which route a text belongs to, told without a model."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from django.conf import settings

from agents.intake.exemplars import SHARPNESS, votes
from agents.names import Route
from agents.support.dialogue.utterance import BUTTONS
from agents.words import LOCALES, Phrase
from knowledge.embedding import encode_any_language
from knowledge.trained_layers import classifier

BILLING, OTHER = KINDS = ("billing", "other")
# What no exemplar is near to is most likely a question about the documents: their subject is not
# known here. As much as one exemplar at this cosine.
BENEFIT_OF_DOUBT = math.exp(SHARPNESS * (0.45 - 1))
# What the fallback offers, a button for each route.
OFFERS = {
    Route.DOCUMENTATION: Phrase.ROUTE_DOCUMENTATION,
    Route.BILLING: Phrase.ROUTE_BILLING,
    Route.ANALYSIS: Phrase.ROUTE_ANALYSIS,
}


def likelihoods(text: str, routes: Sequence[Route]) -> dict[Route, float]:
    """Return how likely the text belongs to each of the routes, summing to 1.

    Raises EmbeddingUnavailable.
    """
    if (route := picked(text)) in routes:
        return {each: float(each is route) for each in routes}
    others = [route for route in routes if route is not Route.BILLING]
    (kind_votes,) = votes([text], [f"route_{route}" for route in others])
    weights: dict[Route, float] = {route: kind_votes[f"route_{route}"] for route in others}
    if Route.DOCUMENTATION in weights:
        weights[Route.DOCUMENTATION] += BENEFIT_OF_DOUBT
    total = sum(weights.values())
    billing = _about_billing(text) if Route.BILLING in routes else 0.0
    shares = {
        route: (1 - billing) * weight / total if total else 0.0 for route, weight in weights.items()
    }
    return {route: shares.get(route, billing) for route in routes}


def picked(text: str) -> Route | None:
    """Return the route whose button was pressed, in whichever language; None: no button was."""
    return _buttons().get(text.strip().casefold())


def layer() -> Path:
    """Return where the weights for the vectors of this deployment lie.

    Trained by `assistant.lab.routes_fit` on three public sets of intents and the exemplars.
    """
    name = "billing_multilingual.npz" if settings.CROSS_LINGUAL else "billing.npz"
    return Path(__file__).with_name(name)


def _about_billing(text: str) -> float:
    """How likely a text is about the customer's account and money, 0 to 1."""
    trained = classifier(layer())
    (chances,) = trained.probabilities(encode_any_language([text]), [text])
    return float(chances[trained.words.kinds.index(BILLING)])


@cache
def _buttons() -> dict[str, Route]:
    # The button of the documents is no question that could be answered.
    return {
        phrase.in_language(language).casefold(): Route.BILLING
        for phrase in (OFFERS[Route.BILLING], *BUTTONS.values())
        for language in LOCALES
    }
