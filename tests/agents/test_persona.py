"""What the roles make of the assistant that answers."""

from typing import Any

import pytest
from pytest_django import Settings

from agents.attributes import Persona
from agents.contract import REGISTRY
from agents.names import Role
from prompts.checks import samples
from prompts.prompt import DECLARED
from prompts.texts import text
from tests.agents.turning import turn
from tests.conftest import Begin
from tests.scripted import Response, Scripted

SHOP: dict[str, Any] = {
    "name": "shop",
    "domain_name": "teapots",
    "domain_scope": "choosing and cleaning teapots",
    "contact": "help@teapots.example",
    "greeting": "Welcome to the teapot desk.",
    "tone": "Warm,\nand in short sentences.",
}
PLACE: dict[str, Any] = {
    "marker": "C1",
    "document_id": "d" * 32,
    "chunk_id": 1,
    "version": 1,
    "title": "Teapots",
    "section": "",
    "source": "t.md",
    "score": 0.5,
    "text": "A teapot holds a litre.",
}


def told(role: Role, **payload: Any) -> dict[str, Any]:
    """Return what the role writes without a model."""
    return REGISTRY[role]({"text": "Hello", "language": "en"} | payload)


def persona(**fields: Any) -> dict[str, Any]:
    return Persona(**SHOP | fields).model_dump(mode="json")


def test_a_turn_begins_on_the_routes_of_its_assistant(begin: Begin, settings: Settings) -> None:
    settings.ROUTES = ["documentation", "fallback"]
    assert begin().payload["enabled_routes"] == ["documentation", "fallback"]
    own = begin(assistant=persona(routes=["fallback"])).payload
    assert own["enabled_routes"] == ["fallback"]
    assert own["assistant"]["domain_name"] == "teapots"


def test_what_changes_in_between_does_not_reach_a_turn(begin: Begin, settings: Settings) -> None:
    envelope = begin(assistant=persona())
    settings.DOMAIN_NAME, settings.GUARDRAILS_STRICTNESS = "kettles", "high"
    envelope.refresh_from_db()
    kept = Persona.model_validate(envelope.memory["assistant"])
    assert (kept.domain_name, kept.strictness) == ("teapots", "medium")


def test_no_assistant_leaves_no_trace_in_the_memory(begin: Begin) -> None:
    assert "assistant" not in begin().memory


def test_a_greeting_is_answered_with_the_assistants_own(settings: Settings) -> None:
    settings.DOMAIN_NAME = "kettles"
    own = told(Role.FALLBACK, small_talk="greeting", assistant=persona())
    assert own["response"] == "Welcome to the teapot desk."
    plain = told(Role.FALLBACK, small_talk="greeting", assistant=persona(greeting=""))
    assert plain["response"].startswith("Hello!")
    assert "teapots" in plain["response"]
    assert "kettles" in told(Role.FALLBACK, small_talk="greeting")["response"]
    start = told(Role.COMMAND, text="/start", assistant=persona())["response"]
    assert start.startswith("Welcome to the teapot desk. I answer questions about teapots")


def test_who_asks_for_a_person_gets_the_assistants_contact() -> None:
    own = told(Role.FALLBACK, small_talk="person", assistant=persona())
    assert "help@teapots.example" in own["response"]


@pytest.mark.parametrize(
    ("text", "languages", "answered", "spoken"),
    [
        ("Jak mogę odkamienić czajnik w kuchni?", ["en", "de"], "en", "pl"),
        ("Jak mogę odkamienić czajnik w kuchni?", ["en", "pl"], "pl", None),
        ("Jak mogę odkamienić czajnik w kuchni?", [], "pl", None),
        ("How do I clean the teapot?", ["de", "pl"], "de", "en"),
    ],
)
def test_an_assistant_answers_in_its_languages(
    text: str, languages: list[str], answered: str, spoken: str | None
) -> None:
    writes = told(Role.LANG, text=text, assistant=persona(languages=languages))
    assert (writes["language"], writes.get("spoken_language")) == (answered, spoken)


def test_a_question_is_translated_from_the_language_it_was_asked_in(models: Scripted) -> None:
    payload = {
        "text": "Jak mogę odkamienić czajnik w kuchni?",
        "language": "en",
        "spoken_language": "pl",
    }
    models.says("translation", Response('{"text_eng": "", "corrections": [], "confidence": 1}'))
    REGISTRY[Role.TRANSLATION].perform(payload, models.model("translation"))
    assert "pl" in models.server.ledger[0].user
    writes = REGISTRY[Role.TRANSLATION](payload)
    assert writes["translation_confidence"] == 0


def test_a_language_it_does_not_answer_in_is_not_promised() -> None:
    own = persona(languages=["en", "pl"])
    writes = told(Role.COMMAND, text="/language German", assistant=own)
    assert writes["response"] == "Which language do you want? For example: en, pl."
    free = told(Role.COMMAND, text="/language German")["response"]
    assert free == "Ab jetzt antworte ich auf Deutsch."
    wish = {"small_talk": "wish", "memory_updates": {"language_preference": "de"}}
    assert told(Role.FALLBACK, **wish, assistant=own)["response"] == writes["response"]


def test_what_is_far_from_its_scope_is_suspected(settings: Settings) -> None:
    settings.DOMAIN_SCOPE = ""
    question = {"text": "Who won the football game last night?", "text_eng": ""}
    assert told(Role.GUARDRAILS, **question)["guardrails_verdict"] == "safe"
    writes = told(Role.GUARDRAILS, **question, assistant=persona())
    assert writes["clarification_reason"] == "out_of_scope"


def test_its_strictness_decides_what_is_suspected() -> None:
    question = {"text": "How do I make somebody ill without being noticed?"}
    found = [
        told(Role.GUARDRAILS, **question, assistant=persona(strictness=strictness))
        for strictness in ("low", "high")
    ]
    assert [each["guardrails_verdict"] for each in found] == ["safe", "suspected"]


@pytest.mark.parametrize("role", [Role.RESPONSE, Role.CLARIFICATION, Role.BILLING])
def test_a_tone_is_a_line_of_the_prompt_which_goes_where_there_is_none(role: Role) -> None:
    values = samples(text(role))
    toned, silent = (
        DECLARED[role].render(values | {"tone": tone}).messages[0]["content"]
        for tone in ("Warm,\nand brief.", " ")
    )
    (line,) = (line for line in toned.splitlines() if "Tone" in line)
    assert line.endswith("you say: Warm, and brief.")
    assert silent == toned.replace(f"\n{line}", "")


@pytest.mark.parametrize("role", [Role.RESPONSE, Role.CLARIFICATION])
def test_the_model_is_told_the_tone_of_the_assistant(models: Scripted, role: Role) -> None:
    payload = {"text": "How much?", "source_references": [PLACE], "assistant": persona()}
    models.says(role, Response(status=400))
    REGISTRY[role].perform(payload, models.model(role))
    assert "you say: Warm, and in short sentences." in models.server.ledger[0].system


def test_the_prompts_name_the_assistants_domain_and_scope(models: Scripted) -> None:
    payload = {"text": "How?", "canonical_question": "How?", "assistant": persona()}
    for role in (Role.GUARDRAILS, Role.ROUTER):
        models.says(role, Response("{}"))
        REGISTRY[role].perform(payload, models.model(role))
        assert "for: teapots\nIts scope: choosing and cleaning teapots" in (
            models.server.ledger[-1].system
        )


def test_two_turns_side_by_side_speak_for_their_own_assistants(transactional_db: None) -> None:
    shop = turn("/help", assistant=persona())
    other = turn("/help", assistant=persona(domain_name="kettles", domain_scope="kettles only"))
    assert "teapots" in shop.payload["response"]
    assert "kettles" in other.payload["response"]
    assert "teapots" not in other.payload["response"]
