"""A slow role and a heavy user: neither holds up the others."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.bench.modelserver import Asked, Said, serving
from agents.names import INSTANCES, Role
from tests.e2e.conftest import PAGES, Answer, Docent, environment, free_port, running
from tests.e2e.test_crashes import endings

LIMIT = 30
# A worker of all roles but the manager has fewer threads than there are turns under way here.
assert sum(INSTANCES.values()) < LIMIT


def never(_: Asked) -> Said:
    """A model that takes longer than anybody waits."""
    return Said(hang=True)


@pytest.fixture(scope="module")
def docent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docent]:
    """Docent in the compact layout, whose response asks a model that doesn't reply."""
    log = tmp_path_factory.mktemp("fairness") / "up.log"
    with serving(never) as server:
        more = {
            "SCRIPTED_BASE_URL": server.base_url,
            "RESPONSE_MODEL": "fake@scripted",
            "RESPONSE_TIMEOUT": "300",
            "TURN_DEADLINE_SECONDS": "300",
            "MAX_TURNS_PER_KEY": str(LIMIT),
        }
        with running(Docent(free_port(), environment(4) | more, log=log)) as started:
            ingested = started.manage("ingest", str(PAGES), "--collection", "teapot")
            assert ingested.returncode == 0, ingested.stderr
            yield started


@pytest.fixture(scope="module")
def heavy(docent: Docent) -> list[str]:
    """The turns of a user who asks as much as is allowed at a time."""
    key = new_key(docent, "heavy")
    return [ask(docent, key).body["turn_id"] for _ in range(LIMIT)]


def new_key(docent: Docent, name: str) -> str:
    return docent.manage("apikey", "create", name, "--staff").stdout.strip()


def ask(docent: Docent, key: str, message: str = "How do I descale the heater?") -> Answer:
    said = {"message": message, "collections": ["teapot"], "wait": False}
    return docent.call("POST", "/api/chat/", said, key=key)


def queue(docent: Docent, name: str) -> dict[str, Any]:
    queues = docent.call("GET", "/api/admin/queues/").body["queues"]
    (found,) = (each for each in queues if each["name"] == name)
    return dict(found)


def test_a_role_that_waits_for_its_model_takes_no_thread_from_the_others(
    docent: Docent, heavy: list[str]
) -> None:
    docent.key = new_key(docent, "light")
    (reply,) = endings(docent, [ask(docent, docent.key, "/help").body["turn_id"]])
    assert reply["status"] == "completed"
    assert queue(docent, "response")["running"] == INSTANCES[Role.RESPONSE]
    stuck = [docent.call("GET", f"/api/turns/{turn}/").body["status"] for turn in heavy]
    assert stuck == ["running"] * LIMIT


def test_a_user_with_too_many_turns_under_way_is_refused_and_another_is_not(
    docent: Docent, heavy: list[str]
) -> None:
    refused = ask(docent, new_key(docent, "heavy"))
    assert (refused.status, refused.body["code"]) == (429, "too_many_turns")
    assert ask(docent, new_key(docent, "another"), "/help").status == 202
