"""Command: what texts that start with a slash do."""

import pytest
from pytest_django import Settings

from agents.ending.command import obey


@pytest.mark.parametrize(
    ("wish", "language"),
    [("de", "de"), ("German", "de"), ("auf deutsch", "de"), ("中文", "zh"), ("русский", "ru")],
)
def test_language_is_set_by_code_or_by_name(wish: str, language: str) -> None:
    writes = obey({"text": f"/language {wish}"})
    assert writes["memory_updates"]["language_preference"] == language


def test_a_set_language_is_confirmed_in_it() -> None:
    assert obey({"text": "/language German"})["response"] == "Ab jetzt antworte ich auf Deutsch."


def test_a_language_without_sentences_is_noted_and_named() -> None:
    writes = obey({"text": "/language Italian"})
    assert writes["memory_updates"]["language_preference"] == "it"
    assert "Italian" in writes["response"]


def test_an_unknown_language_changes_nothing() -> None:
    writes = obey({"text": "/language klingon"})
    assert "memory_updates" not in writes
    assert "en, de" in writes["response"]


def test_an_unknown_command_is_named_and_the_others_listed() -> None:
    response = obey({"text": "/dance now"})["response"]
    assert "/dance" in response
    assert "/help" in response


def test_the_stored_preference_decides_the_language_of_help() -> None:
    assert "Befehle" in obey({"text": "/help", "language_preference": "de"})["response"]


def test_help_names_the_domain(settings: Settings) -> None:
    settings.DOMAIN_NAME = "coffee machines"
    assert "coffee machines" in obey({"text": "/HELP"})["response"]
