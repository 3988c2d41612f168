"""Fixtures for turns on the route of analyses."""

from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.names import ANALYSTS, Role
from assistant.lab.scripted_analysis import ENGLISH
from tests.agents.analysis.analysing import learn, play
from tests.sensible import Sensible

ROUTES = ["documentation", "analysis"]


@pytest.fixture
def analysts(sensible: Sensible, settings: Settings, tmp_path: Path) -> Sensible:
    """Models on the open route, and the documents of both cases in a collection each."""
    settings.ROUTES = ROUTES
    choice = settings.MODELS[Role.RESPONSE]
    settings.MODELS = settings.MODELS | {
        role.value: replace(choice, timeout=5.0, max_tokens=4000) for role in ANALYSTS
    }
    learn(ENGLISH, tmp_path)
    play(sensible, ENGLISH)
    return sensible
