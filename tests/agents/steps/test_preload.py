"""What the first question needs is loaded before a worker says that it listens."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError

from agents.contract import REGISTRY, Agent, Result
from agents.names import Role
from agents.steps import presence
from agents.steps.preload import LOADING_ROLES, preload
from assistant import celery
from assistant.management.commands import workers
from knowledge.embedding.local import LOCAL
from knowledge.errors import EmbeddingUnavailable

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unloaded() -> Iterator[None]:
    """A process that has encoded nothing yet."""
    LOCAL.forget()
    yield
    LOCAL.forget()


@pytest.mark.usefixtures("unloaded")
def test_the_models_are_there_before_a_worker_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def listen(_: list[str]) -> None:
        assert presence.missing_roles() == presence.needed_roles()
        loaded.append(LOCAL._runtime is not None and "model.onnx" in LOCAL._runtime.sessions)

    monkeypatch.setattr(celery.app, "worker_main", listen)
    with warnings.catch_warnings():
        workers.consume([Role.ROUTER, Role.GUARDRAILS])
    assert loaded == [True]


def test_each_sees_what_those_before_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}
    perform = Agent.perform

    def noted(agent: Agent[Any], payload: dict[str, Any], llm: None) -> Result:
        seen[agent.contract.role] = dict(payload)
        return perform(agent, payload, llm)

    monkeypatch.setattr(Agent, "perform", noted)
    preload(list(Role))
    assert list(seen) == list(LOADING_ROLES)
    assert "search_results" in seen[Role.AUGMENTATION]


@pytest.mark.parametrize("error", [EmbeddingUnavailable("away"), OperationalError("away")])
def test_what_cannot_be_loaded_keeps_no_worker_from_listening(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(REGISTRY[Role.GUARDRAILS], "work", fail)
    preload([Role.GUARDRAILS, Role.ROUTER])
    assert "guardrails is not loaded" in caplog.text
