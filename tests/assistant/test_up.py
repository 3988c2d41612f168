"""Up: what the first start may spend on a model."""

import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO

import pytest
from django.conf import settings as project
from pytest_django import Settings
from rich.console import Console

from agents.llm.requests import Choice
from assistant.management.commands import up
from assistant.management.commands.workers import processes
from tests import factories

pytestmark = pytest.mark.django_db
SHOW = "from django.conf import settings; print(settings.DESCRIBE_ON_REQUEST)"


def test_documents_are_taken_in_by_a_process_of_their_own() -> None:
    commands = processes([], copies=2)
    assert [name for name, words in commands.items() if "ingest" in words] == ["ingest"]
    assert commands["ingest"][-1] == "ingest"
    assert "search" in commands["agents 2"]


@pytest.fixture(autouse=True)
def model(settings: Settings) -> None:
    """A model of its own server, that only GEN_MODEL names."""
    settings.MODELS = settings.MODELS | {"enrichment": Choice("llama3.1@ollama")}
    settings.DESCRIBE_ON_REQUEST = True


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Sit at a terminal and answer so; what was asked is in the list."""

    def answering(answer: str) -> list[str]:
        asked: list[str] = []

        def read(question: str) -> str:
            asked.append(question)
            return answer

        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("builtins.input", read)
        return asked

    return answering


def decision() -> tuple[bool, str]:
    """Return whether the first start lets the model describe, and what it printed."""
    console = Console(width=200, file=StringIO())
    return up._is_to_describe(console), console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("answer", "yes"), [("y", True), ("", False), ("n", False)])
def test_on_a_terminal_the_first_start_says_what_it_costs_and_asks(
    answers: Callable[[str], list[str]], answer: str, yes: bool
) -> None:
    asked = answers(answer)
    decided, printed = decision()
    assert decided is yes
    assert len(asked) == 1
    pages = len(list(up.DOCUMENTATION.glob("*.md")))
    assert f"{pages} calls of llama3.1@ollama, about " in printed
    assert "at most 0.0000 USD" in printed


def test_without_a_terminal_nothing_is_spent_unasked() -> None:
    decided, printed = decision()
    assert not decided
    assert "`up --describe`" in printed


@pytest.mark.parametrize("case", ["named", "no model", "not the first"])
def test_nobody_is_asked_where_there_is_nothing_to_ask(
    answers: Callable[[str], list[str]], settings: Settings, case: str
) -> None:
    asked = answers("y")
    if case == "named":
        settings.DESCRIBE_ON_REQUEST = False
    elif case == "no model":
        settings.MODELS = settings.MODELS | {"enrichment": Choice()}
    else:
        factories.collection()
    assert decision() == (False, "")
    assert not asked


@pytest.mark.parametrize(
    ("variables", "on_request"),
    [
        ({"GEN_MODEL": "llama3.1@ollama"}, "True"),
        ({"GEN_MODEL": "llama3.1@ollama", "ENRICHMENT_MODEL": "llama3.1@ollama"}, "False"),
        ({}, "False"),
    ],
)
def test_documents_wait_for_a_request_only_where_no_model_is_named_for_them(
    variables: dict[str, str], on_request: str
) -> None:
    names = ("GEN_MODEL", "ENRICHMENT_MODEL")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    shown = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=project.BASE_DIR,
        env=clean | {"DJANGO_SETTINGS_MODULE": "assistant.settings"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.stdout.strip() == on_request, shown.stderr
