"""Fallback: what it offers."""

import pytest
from pytest_django import Settings

from agents.attributes import SmallTalk
from agents.ending.fallback import SAID, offer
from agents.ending.small_talk import KINDS
from agents.names import Route
from agents.words import LOCALES, Phrase


def test_the_open_routes_are_offered() -> None:
    writes = offer({"text": "?", "language": "en", "enabled_routes": ["documentation", "fallback"]})
    assert writes["suggested_actions"][0] == "Ask a question about the documents"
    assert writes["response"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("How can I change the colour of my invoices?", Route.DOCUMENTATION),
        ("Good evening, how are you doing?", None),
    ],
)
def test_the_hint_is_the_route_that_the_text_is_about_or_none(
    text: str, hint: Route | None
) -> None:
    payload = {"text": text, "language": "en", "enabled_routes": ["documentation", "fallback"]}
    assert offer(payload)["route_hint"] == hint


ALL_ROUTES = ["documentation", "billing", "fallback"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [("my invoice, hmm", Route.BILLING), ("the settings, hmm", Route.DOCUMENTATION)],
)
def test_of_two_routes_three_choices_are_offered_and_the_likelier_one_first(
    text: str, hint: Route
) -> None:
    writes = offer({"text": text, "language": "en", "enabled_routes": ALL_ROUTES})
    first, *_ = writes["suggested_actions"]
    assert writes["route_hint"] == hint
    assert first == Phrase[f"ROUTE_{hint.name}"]
    assert Phrase.SOMETHING_ELSE in writes["suggested_actions"]
    assert writes["response"].count("\n- ") == 3


def test_without_an_open_route_there_is_no_hint_and_still_an_action() -> None:
    writes = offer({"text": "How?", "language": "de", "enabled_routes": ["fallback"]})
    assert writes["route_hint"] is None
    assert writes["suggested_actions"] == ["/help eingeben, um zu sehen, was ich kann"]


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "ru", "zh"])
@pytest.mark.parametrize("kind", [*KINDS, "wish"])
def test_all_small_talk_is_answered_in_the_users_language(kind: SmallTalk, language: str) -> None:
    reply = offer({"language": language, "small_talk": kind, "offers": ["Care"]})["response"]
    english = offer({"language": "en", "small_talk": kind, "offers": ["Care"]})["response"]
    assert reply
    assert (reply == english) == (language == "en")


def test_each_kind_is_answered_differently() -> None:
    replies = {kind: offer({"small_talk": kind, "offers": ["Care"]})["response"] for kind in KINDS}
    assert len(set(replies.values())) == len(KINDS)
    assert None in SAID


def test_who_asks_for_a_person_hears_the_contact_and_none_is_made_up(settings: Settings) -> None:
    assert "don't have" in offer({"small_talk": "person"})["response"]
    settings.SUPPORT_CONTACT = "help@example.com"
    assert "help@example.com" in offer({"small_talk": "person"})["response"]


@pytest.mark.parametrize("language", LOCALES)
def test_who_is_discontent_hears_of_the_staff_that_are_here(
    language: str, settings: Settings
) -> None:
    settings.HANDOVER = True
    writes = offer({"text": "You are useless", "language": language, "small_talk": "discontent"})
    assert Phrase.PERSON_OFFERED.in_language(language) in writes["response"]
    assert Phrase.NO_CONTACT.in_language(language) not in writes["response"]


def test_who_asks_what_there_is_to_ask_sees_titles() -> None:
    titles = [f"Page {number}" for number in range(6)]
    reply = offer({"small_talk": "ability", "offers": titles})["response"]
    assert "- Page 3" in reply
    assert "- Page 4" not in reply
    assert "no documents" in offer({"small_talk": "ability"})["response"]


def test_a_wish_for_a_language_is_confirmed_in_it() -> None:
    noted = {"small_talk": "wish", "memory_updates": {"language_preference": "de"}}
    assert offer(noted)["response"] == Phrase.LANGUAGE_SET.in_language("de")
    unknown = {"small_talk": "wish", "memory_updates": {"language_preference": "ja"}}
    assert "Japanese" in offer(unknown)["response"]
