"""What an assistant may set, and what a turn sees of it."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from pytest_django import Settings

from agents.attributes import Persona
from agents.llm.requests import Choice
from agents.names import MODEL_ASKERS, PROFILES
from agents.opening_hours import OpeningHours
from agents.steps.model_context import choice_of
from conversations.assistants import Assistant, models_by_asker
from tests import factories

pytestmark = pytest.mark.django_db


def problems(**fields: Any) -> dict[str, list[str]]:
    """Return what is wrong with an assistant, by field."""
    try:
        Assistant(**{"name": "shop"} | fields).full_clean()
    except ValidationError as error:
        return error.message_dict
    return {}


def test_a_name_is_all_an_assistant_needs() -> None:
    assert problems() == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "This field cannot be blank."),
        ({"name": "The Shop"}, "Use a-z, 0-9, '-' and '_'."),
        ({"collections": ["loans", "x"]}, "There is no collection 'x'. There are: loans."),
        ({"collections": "loans"}, "collection: must be a list of names."),
        ({"routes": ["analysis"]}, "no open route 'analysis'. There are: documentation, fallback."),
        ({"languages": ["english"]}, "'english' is no language: use codes such as en, pl"),
        ({"languages": ["en", "xx"]}, "'xx' is no language"),
        ({"models": {"RESPONSE": "a@openai"}}, "'RESPONSE' sets no model. Allowed: GEN_MODEL,"),
        ({"models": {"ENRICHMENT_MODEL": "a@openai"}}, "'ENRICHMENT_MODEL' sets no model."),
        ({"models": {"GEN_MODEL": ""}}, "GEN_MODEL: names no model; none lets the role ask none."),
        ({"models": {"GEN_MODEL": "x@nowhere"}}, "'x@nowhere' names no known provider; write"),
        ({"models": {"GEN_MODEL": 3}}, "GEN_MODEL: names no model"),
        ({"tone": "x" * 301}, "at most 300 characters (it has 301)"),
        ({"greeting": "a\0b"}, "Must be text without null characters."),
        ({"strictness": "extreme"}, "'extreme' is not a valid choice."),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(
    fields: dict[str, Any], said: str, settings: Settings
) -> None:
    settings.ROUTES = ["documentation", "fallback"]
    factories.collection("loans")
    (field,) = fields
    found = problems(**fields)
    assert list(found) == [field]
    assert said in " ".join(found[field])


def test_two_assistants_do_not_share_a_name() -> None:
    Assistant.objects.create(name="shop")
    assert "already exists" in problems()["name"][0]


def test_what_is_left_open_the_settings_say(settings: Settings) -> None:
    settings.DOMAIN_NAME, settings.DOMAIN_SCOPE = "Teamdesk", "calendars"
    settings.SUPPORT_CONTACT, settings.GUARDRAILS_STRICTNESS = "help@example.com", "high"
    settings.OPENING_HOURS = OpeningHours.parse("mon-fri 09:00-17:00 Europe/Warsaw")
    assert Assistant(name="shop").persona() == Persona(name="shop")
    assert Persona().opening_hours == "mon-fri 09:00-17:00 Europe/Warsaw"
    persona = Assistant(name="shop", domain_name="Shop", strictness="low").persona()
    assert (persona.domain_name, persona.domain_scope) == ("Shop", "calendars")
    assert (persona.contact, persona.strictness) == ("help@example.com", "low")


def test_a_route_that_was_closed_since_is_not_taken(settings: Settings) -> None:
    settings.ROUTES = ["documentation", "fallback"]
    assistant = Assistant(name="shop", routes=["fallback"])
    assert assistant.persona().routes == ["fallback"]
    settings.ROUTES = ["documentation"]
    assert assistant.persona().routes == []


def test_models_are_as_if_they_stood_among_the_settings(settings: Settings) -> None:
    settings.MODEL_PROFILE, settings.OWN_MODEL_ASKERS = "full", frozenset({"essence"})
    chosen = {"GEN_MODEL": "big@openai", "QUALITY_MODEL": "none", "ROUTER_MODEL": "small@ollama"}
    own = models_by_asker(chosen)
    assert set(own) == set(MODEL_ASKERS) - {"essence", "enrichment"}
    assert (own["response"], own["quality"], own["router"]) == ("big@openai", "", "small@ollama")
    settings.MODEL_PROFILE = "answer"
    assert set(models_by_asker(chosen)) == {*PROFILES["answer"], "quality", "router"}
    assert models_by_asker({}) == {}


def test_a_role_asks_the_model_of_the_turns_assistant(settings: Settings) -> None:
    standard = Choice("standard@openai", second="second@openai", max_tokens=77)
    settings.MODELS = {"response": standard, "quality": standard}
    payload = {"assistant": {"models": {"response": "own@ollama", "quality": ""}}}
    own = choice_of("response", payload)
    assert (own.model, own.second, own.max_tokens) == ("own@ollama", "second@openai", 77)
    assert choice_of("quality", payload).model == ""
    assert choice_of("response", {}) == choice_of("response", {"assistant": {}}) == standard
