"""Fixtures for turns in which every role asks a model."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from agents.llm import breaker, dialects, pace, retry
from agents.names import MODEL_ASKERS
from knowledge import ingestion
from knowledge.providers import Provider
from tests.e2e.conftest import PAGES
from tests.sensible import Sensible, thinking


@pytest.fixture
def sensible(
    transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sensible]:
    """Every role asks a sensible model; the pages of the Teapot are known; nothing is cached.

    Nobody waits between attempts.
    """
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    ingestion.ingest(ingestion.find([PAGES]), collection="teapot")
    breaker.forget("scripted")
    pace.forget("fake@scripted")
    dialects.forget()
    with thinking() as server:
        settings.PROVIDERS = settings.PROVIDERS | {
            "scripted": Provider("scripted", server.server.base_url)
        }
        settings.MODELS = {
            asker: replace(settings.MODELS[asker], model="fake@scripted", timeout=0.6)
            for asker in MODEL_ASKERS
        }
        settings.ROUTES = ["documentation", "fallback"]
        settings.CACHE_MODEL_SECONDS = settings.CACHE_TRANSLATION_SECONDS = 0
        settings.CACHE_QUALITY_SECONDS = settings.CACHE_SEARCH_SECONDS = 0
        yield server
