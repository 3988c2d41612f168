"""Crashes of those who ask models beside an answer: a reply that came is asked for once."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.e2e.conftest import Docent, Stack
from tests.e2e.test_crash_matrix import BESIDE_SEARCH, answered, assert_once
from tests.e2e.test_crash_matrix import deaths as deaths
from tests.sensible import Sensible

pytestmark = pytest.mark.every_moment
# A search asks twice: when it has died after its first reply, it goes on with its second call.
SEARCHING = ("expansion", "hyde")


@pytest.fixture
def docent(stack: Stack) -> Iterator[Docent]:
    """Docent whose searches ask a model, and whose history lasts for one turn."""
    with stack.switched(SEARCH_EXPANSION="both", HISTORY_MESSAGES=2) as switched:
        yield switched


@pytest.fixture(autouse=True)
def calm(server: Sensible, deaths: Path) -> None:
    """Every test begins without calls, and without deaths that another left."""
    server.reset()
    deaths.write_text("")


def test_a_clarification_that_dies_after_its_reply_asks_once(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    server.says("essence", {"unclear": "missing_context"})
    server.says("clarification", {"message": "I know the Teapot. What about it?"})
    reply = answered(docent, deaths, "after_journal clarification")
    assert "I know the Teapot." in reply["reply"]
    assert_once(docent, server, reply, ends="awaiting_user")


def test_a_memory_that_dies_after_its_reply_asks_once(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    talk = f"s-{uuid4()}"
    docent.ask("What is the phone app?", session_id=talk)
    server.reset()
    reply = answered(docent, deaths, "after_journal memory", session_id=talk)
    assert server.server.prompts().count("memory") == 1
    assert_once(docent, server, reply, beside=BESIDE_SEARCH | {*SEARCHING})


def test_a_search_that_dies_between_its_two_calls_asks_each_once(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    reply = answered(docent, deaths, "after_journal search")
    assert [each for each in server.server.prompts() if each in SEARCHING] == [*SEARCHING]
    assert_once(docent, server, reply, beside=BESIDE_SEARCH)
