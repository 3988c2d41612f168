"""Fixtures for the tests of tools: a bench of tools, and a step at which they are called."""

from collections.abc import Iterator

import pytest

from agents.steps.records import Claim
from agents.tools import toolbox as toolbox_module
from agents.tools.toolbox import Toolbox
from prompts.prompt import DECLARED, Prompt
from prompts.texts import replaced
from tests.agents.llm.probe import PROBE
from tests.agents.tools.bench import Bench, laid_out, step_of
from tests.conftest import Begin


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Tools of these tests alone; nobody waits between attempts."""
    monkeypatch.setattr(toolbox_module, "sleep", lambda seconds: None)
    with laid_out() as tools:
        yield tools


@pytest.fixture
def claim(begin: Begin, bench: Bench) -> Claim:
    """A step that we hold."""
    return step_of(begin(owner="user:7", user_id="anna", collections=["teapot"]))


@pytest.fixture
def toolbox(claim: Claim) -> Toolbox:
    """The toolbox of that step."""
    return Toolbox.of(claim)


@pytest.fixture
def probe() -> Iterator[Prompt]:
    """A prompt that exists in these tests only; its variables are `question` and `hour`."""
    with replaced("probe", PROBE):
        yield Prompt("probe", "question", "hour")
        del DECLARED["probe"]
