"""Crash matrix: workers die at every moment of a step; the turn ends once, no call is repeated."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CHECKOUT, PAGES, Docent, environment, free_port, running
from tests.e2e.test_crashes import endings
from tests.sensible import Sensible, thinking

FAILPOINTS = CHECKOUT / "tests/e2e/failpoints"
# Found well, but not so well that the evaluator need not look at it.
QUESTION = "Where does the water go when I press the button?"
THINKING = ("translation", "essence", "guardrails", "router", "evaluator", "response", "quality")
MOMENTS = ("after_claim", "during_work", "before_finish", "after_finish")


@pytest.fixture(scope="module")
def server() -> Iterator[Sensible]:
    """The model server, which counts the calls."""
    with thinking() as models:
        yield models


@pytest.fixture(scope="module")
def deaths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says where the next worker dies."""
    path = tmp_path_factory.mktemp("failpoints") / "deaths"
    path.touch()
    return path


@pytest.fixture(scope="module")
def docent(
    server: Sensible, deaths: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Docent]:
    """Docent with models, whose workers can be killed at named moments."""
    log = tmp_path_factory.mktemp("matrix") / "up.log"
    more = {
        "FAILPOINTS": str(deaths),
        "PYTHONPATH": str(FAILPOINTS),
        "SCRIPTED_BASE_URL": server.server.base_url,
        "GEN_MODEL": "fake@scripted",
        "ENRICHMENT_MODEL": "none",
        "ROUTES": "documentation,fallback",
        "TURN_DEADLINE_SECONDS": "300",
        "CACHE_MODEL_SECONDS": "0",
        "CACHE_TRANSLATION_SECONDS": "0",
        "CACHE_QUALITY_SECONDS": "0",
        "CACHE_SEARCH_SECONDS": "0",
    }
    with running(Docent(free_port(), environment(14) | more, log=log)) as started:
        ingested = started.manage("ingest", str(PAGES), "--collection", "teapot")
        assert ingested.returncode == 0, ingested.stderr
        started.key = started.manage("apikey", "create", "matrix", "--staff").stdout.strip()
        yield started


def answered(docent: Docent, server: Sensible, deaths: Path, *lines: str) -> dict[str, Any]:
    """Ask while workers die as `lines` say, and return the reply once the turn has ended."""
    server.reset()
    deaths.write_text("\n".join(lines))
    said = docent.call(
        "POST", "/api/chat/", {"message": QUESTION, "collections": ["teapot"], "wait": False}
    )
    assert said.status == 202, said.body
    (reply,) = endings(docent, [said.body["turn_id"]])
    assert deaths.read_text() == "", f"nobody came to: {deaths.read_text()}"
    return reply


def assert_once(docent: Docent, server: Sensible, reply: dict[str, Any]) -> None:
    """The turn ended once, each of its steps is done once, each call was made once."""
    assert reply["status"] == "completed"
    assert reply["mode"] == "model"
    steps = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body["steps"]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert {step["status"] for step in steps} == {"done"}
    assert [step["wrote"].get("ends") for step in steps].count("completed") == 1
    assert set(server.server.prompts()) <= set(THINKING)


def test_a_reply_that_is_in_the_journal_is_never_asked_for_again(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    roles = [role for role in THINKING if role not in {"guardrails", "router"}]
    reply = answered(docent, server, deaths, *(f"after_journal {role}" for role in roles))
    assert_once(docent, server, reply)
    assert set(Counter(server.server.prompts()).values()) == {1}


@pytest.mark.parametrize("role", ["guardrails", "router"])
def test_one_of_three_at_intake_dies_after_its_reply_and_asks_once(
    docent: Docent, server: Sensible, deaths: Path, role: str
) -> None:
    reply = answered(docent, server, deaths, f"after_journal {role}")
    assert_once(docent, server, reply)
    assert Counter(server.server.prompts())[role] == 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_agent_dies_at_any_moment_and_the_turn_ends_once(
    docent: Docent, server: Sensible, deaths: Path, moment: str
) -> None:
    reply = answered(docent, server, deaths, f"{moment} lang", f"{moment} response")
    assert_once(docent, server, reply)
    assert Counter(server.server.prompts())["response"] == 1


@pytest.mark.parametrize("moment", ["after_claim", "before_finish", "after_finish"])
def test_the_manager_dies_at_any_moment_and_the_turn_ends_once(
    docent: Docent, server: Sensible, deaths: Path, moment: str
) -> None:
    reply = answered(docent, server, deaths, f"{moment} manager")
    assert_once(docent, server, reply)
    assert set(Counter(server.server.prompts()).values()) == {1}
