"""Fixtures of the tests of how models are asked."""

from collections.abc import Iterator

import pytest

from prompts.prompt import DECLARED, Prompt
from prompts.texts import replaced
from tests.agents.llm.probe import PROBE


@pytest.fixture
def probe() -> Iterator[Prompt]:
    """A prompt that exists in these tests only; its variables are `question` and `hour`."""
    with replaced("probe", PROBE):
        yield Prompt("probe", "question", "hour")
        del DECLARED["probe"]
