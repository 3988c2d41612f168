"""A server that is strict in another way: two settings are enough to use it all the same."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from environs import Env

from agents.llm import breaker, dialects
from agents.llm.journal import Subject
from agents.llm.model import Model
from agents.models import ModelCall
from agents.names import Role
from assistant.environment import choices, resolved
from assistant.lab.model_server import serving
from knowledge.providers import from_environment
from prompts.prompt import Prompt
from tests.agents.llm.probe import Verdict
from tests.scripted import ModelServer
from tests.strict import KNOWN, strict

pytestmark = pytest.mark.django_db(transaction=True)

ASKED: dict[str, Any] = {"question": "Is it good?", "hour": "noon"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """The server, known as `acme` by nothing but its address."""
    dialects.forget()
    before = settings.PROVIDERS, settings.MODELS
    with serving(strict) as server:
        yield server
    settings.PROVIDERS, settings.MODELS = before


@pytest.fixture
def model(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Model]:
    """What the evaluator asks when these two variables are set, and nothing else."""
    monkeypatch.setenv("ACME_BASE_URL", server.base_url)
    monkeypatch.setenv("GEN_MODEL", "qwen3@acme")
    settings.PROVIDERS = from_environment({"ACME_BASE_URL": server.base_url})
    breaker.forget("acme")
    choice = resolved(choices(Env(), "full"), settings.PROVIDERS, {})[Role.EVALUATOR]
    assert choice.model == "qwen3@acme"
    numbers = iter(range(100))
    return lambda: Model(choice, Subject(f"test/{next(numbers)}", Role.EVALUATOR))


def test_a_shape_is_asked_for_and_got(
    model: Callable[[], Model], server: ModelServer, probe: Prompt
) -> None:
    assert model().ask(probe, Verdict, **ASKED) == Verdict(good=False, why="")
    learning = len(server.ledger)
    assert not model().ask(probe, Verdict, **ASKED).good
    assert len(server.ledger) == learning + 1
    assert set(server.ledger[-1].body) == KNOWN


def test_a_text_is_written_and_told(
    model: Callable[[], Model], server: ModelServer, probe: Prompt
) -> None:
    heard: list[str] = []
    reply = model().write(probe, on_text=heard.append, **ASKED)
    assert heard == [reply.text] == ["Nothing is said. [C1]"]
    assert reply.finish_reason == "stop"


def test_learning_what_it_takes_counts_as_one_call_without_failures(
    model: Callable[[], Model], server: ModelServer, probe: Prompt
) -> None:
    model().ask(probe, Verdict, **ASKED)
    row = ModelCall.objects.get()
    assert (row.outcome, row.attempts) == ("ok", [])
    assert (row.input_tokens, row.cost) == (None, None)
    assert len(server.ledger) > 1
