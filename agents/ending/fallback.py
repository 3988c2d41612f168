"""Fallback: answers small talk, and says what can be helped with when no route fits."""

from collections.abc import Sequence

from django.conf import settings
from pydantic import Field

from agents.attributes import MemoryUpdates, Persona, SmallTalk
from agents.contract import View, Writes, agent
from agents.intake.route_likelihood import OFFERS, likelihoods
from agents.names import Role, Route
from agents.words import (
    ENGLISH,
    Phrase,
    capabilities,
    contact,
    english_name,
    handed_over,
    language_noted,
)
from knowledge.errors import EmbeddingUnavailable

MOST_EXAMPLES = 4
WRITTEN = ("response", "suggested_actions", "route_hint")

# What is said to each kind of small talk; after some of it, what there is to ask about.
SAID: dict[SmallTalk | None, tuple[Phrase, ...]] = {
    None: (Phrase.FALLBACK,),
    "greeting": (Phrase.WELCOME,),
    "thanks": (Phrase.THANKED,),
    "goodbye": (Phrase.FAREWELL,),
    "giving_up": (Phrase.GIVEN_UP,),
    "nature": (Phrase.AUTOMATED,),
    "person": (),
    "discontent": (Phrase.SORRY, Phrase.REPHRASE),
}
EXPLAINED = frozenset({None, "greeting", "nature", "person"})


class Situation(View):
    """What the fallback reads: what was said beside questions, and what there is to offer."""

    text: str = ""
    text_eng: str = ""
    language: str = ENGLISH
    enabled_routes: list[Route] = []
    small_talk: SmallTalk | None = None
    offers: list[str] = []
    memory_updates: MemoryUpdates | None = None
    current_time: str = ""
    assistant: Persona = Field(default_factory=Persona)


@agent(Role.FALLBACK, reads=Situation, writes=WRITTEN)
def offer(view: Situation) -> Writes:
    """Answer as a good colleague would, in few words; hint at the route to try next."""
    language = view.language
    if settings.HANDOVER and view.small_talk == "person":
        said = handed_over(language, view.current_time, view.assistant)
        return {"response": said, "suggested_actions": [], "route_hint": None}
    routes = [route for route in view.enabled_routes if route is not Route.FALLBACK]
    hinted = None if view.small_talk else hint(view.text_eng or view.text, routes)
    choices = [OFFERS[route] for route in sorted(routes, key=lambda each: each != hinted)]
    if len(choices) > 1:
        choices.append(Phrase.SOMETHING_ELSE)
    actions = [phrase.in_language(language) for phrase in (*choices, Phrase.SUGGEST_HELP)]
    reply = _reply(view)
    if len(choices) > 1 and not view.small_talk:
        reply += "".join(f"\n- {action}" for action in actions[: len(choices)])
    return {"response": reply, "suggested_actions": actions, "route_hint": hinted}


def hint(text: str, routes: Sequence[Route]) -> Route | None:
    """Return the route that a text is most likely about; None when that is none of them."""
    try:
        chances = likelihoods(text, [*routes, Route.FALLBACK])
    except EmbeddingUnavailable:
        return None
    best = max(chances, key=lambda route: chances[route])
    return None if best is Route.FALLBACK else best


def _reply(view: Situation) -> str:
    language, talk = view.language, view.small_talk
    if talk == "ability":
        return _abilities(view)
    if talk == "wish":
        return _noted(view)
    if talk == "greeting" and view.assistant.greeting:
        return view.assistant.greeting
    told = [phrase.in_language(language) for phrase in SAID[talk]]
    if talk in {"person", "discontent"}:
        told.append(contact(language, view.assistant))
    if talk in EXPLAINED:
        told.append(capabilities(language, view.assistant))
    return " ".join(told)


def _abilities(view: Situation) -> str:
    """What there is to ask about, with titles of a few documents."""
    language, examples = view.language, view.offers[:MOST_EXAMPLES]
    told = capabilities(language, view.assistant)
    if not examples:
        return f"{told} {Phrase.NO_DOCUMENTS.in_language(language)}"
    lead = Phrase.COVERED.in_language(language)
    listed = "\n".join([lead, *(f"- {title}" for title in examples)])
    return f"{told}\n\n{listed}"


def _noted(view: Situation) -> str:
    """A wish is noted, that for another language in it."""
    updates = view.memory_updates or MemoryUpdates()
    if preferred := updates.language_preference:
        return language_noted(preferred, english_name(preferred), view.assistant)
    return Phrase.NOTED.in_language(view.language)
