"""Crash matrix: processes die at every moment of a step; the turn ends once, no call is repeated.

Moments in `failpoints/sitecustomize.py`, whose file of deaths is empty when all were reached.
Three of them are tried with every change, all with `--every-moment`.
"""

import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.e2e.conftest import Docent, Stack, take_in
from tests.e2e.leavings import BESIDE, FIRST, LEFT
from tests.e2e.test_crashes import assert_answered_once, begin, endings
from tests.e2e.test_ingest_crashes import PATIENCE_SECONDS, Query, rows
from tests.sensible import Sensible

# Found well, but not so well that the evaluator need not look at it.
# Misspelt and of two parts: rules can do no role's part.
QUESTION = "Where does the watter go when I press the button, and why?"
THINKING = ("translation", "essence", "guardrails", "router", "evaluator", "response", "quality")
# Who is at work beside a search that dies may have to ask again: its call was under way.
BESIDE_SEARCH = frozenset({"guardrails", "router"})
# The last two lie around the commit of what the step came to; then nothing was rung for yet.
MOMENTS = (
    "before_claim",
    "after_claim",
    "during_work",
    "before_finish",
    "before_commit",
    "after_commit",
)
WHO = ("response", "manager")
# One before, one around and one after the commit.
ALWAYS = {("during_work", "response"), ("before_commit", "manager"), ("after_commit", "response")}
every_moment = pytest.mark.every_moment
# An ingest is given up after three workers died without progress, so each is killed twice at most
# before it stores something.
TO_THE_END = (
    "before_claim",
    "after_claim",
    "after_journal",
    "after_commit",
    "before_commit",
    "before_finish",
    "before_commit_of_end",
    "after_finish",
)
TO_THE_REMOVAL = ("during_work", "after_encoding", "after_removal")
DESCRIBED = {"description": "On the island.", "summary": "It is about the island."}
ISLAND = {
    name: f"# {name}\n\nThe {name} is painted anew every year." for name in ("pier", "crane", "bay")
}


@pytest.fixture
def deaths(stack: Stack) -> Path:
    """The file that says where the next process dies."""
    return stack.deaths


@pytest.fixture
def docent(stack: Stack) -> Iterator[Docent]:
    """Docent with models, whose processes can be killed at named moments."""
    with stack.switched(CACHE_SEARCH_SECONDS=600) as switched:
        yield switched


@pytest.fixture
def query(docent: Docent) -> Iterator[Query]:
    """Ask the database that Docent runs on."""
    with psycopg.connect(docent.environment["DATABASE_URL"], autocommit=True) as connection:
        yield lambda sql, *values: connection.execute(sql, values or None).fetchall()


def answered(
    docent: Docent, deaths: Path, *lines: str, message: str = QUESTION, **more: str
) -> dict[str, Any]:
    """Ask while processes die as `lines` say, and return the reply once the turn has ended."""
    deaths.write_text("\n".join(lines))
    asked = {"message": message, "collections": ["teapot"], "wait": False, **more}
    said = docent.call("POST", "/api/chat/", asked)
    assert said.status == 202, said.body
    (reply,) = endings(docent, [said.body["turn_id"]])
    assert deaths.read_text() == "", f"nobody came to: {deaths.read_text()}"
    return reply


def assert_once(
    docent: Docent,
    server: Sensible,
    reply: dict[str, Any],
    *,
    ends: str = "completed",
    beside: frozenset[str] = frozenset(),
) -> None:
    """The turn ended once; its steps, its calls but those `beside`, and all it left are there once.

    What was asked of the server is what the turn is charged for.
    """
    assert reply["status"] == ends
    steps = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body["steps"]
    assert [step["number"] for step in steps] == list(range(1, len(steps) + 1))
    assert {step["status"] for step in steps} == {"done"}
    assert [step["wrote"].get("ends") for step in steps].count(ends) == 1
    asked = Counter(server.server.prompts())
    assert {prompt for prompt, times in asked.items() if times > 1} <= beside
    # Who died between the row of a call and the call is charged for it.
    counted = reply["usage"]["model_calls"]
    assert counted >= asked.total() if beside else counted == asked.total()
    with psycopg.connect(docent.environment["DATABASE_URL"]) as connection:
        left = connection.execute(LEFT, [reply["turn_id"]]).fetchone()
    cited = len({each["document_id"] for each in reply["citations"]})
    assert left == (1, 1, cited, 0, "awaiting_user 1" if ends == "awaiting_user" else "open 0")


def read(docent: Docent, turn: str) -> str:
    """Return the answer as who watched the turn has read it, by the rules of `docs/asking.md`."""
    told: dict[int, str] = {}
    with redis.Redis.from_url(docent.environment["REDIS_URL"], decode_responses=True) as store:
        entries: Any = store.xrange(f"turn:{turn}:events")
    for _, entry in entries:
        data = json.loads(entry["data"])
        if entry["event"] == "agent_start" and data["attempt"] > 1:
            told.pop(data["step"], None)
        if entry["event"] == "token":
            if data["replaces"]:
                told.clear()
            told[data["step"]] = told.get(data["step"], "") + data["text"]
    return "".join(told.values())


@pytest.fixture(autouse=True)
def calm(server: Sensible, deaths: Path) -> None:
    """Every test begins without calls, and without deaths that another left."""
    server.reset()
    server.says("enrichment", DESCRIBED)
    deaths.write_text("")


@pytest.mark.parametrize(
    ("moment", "who"),
    [
        pytest.param(*both, marks=[] if both in ALWAYS else every_moment)
        for both in product(MOMENTS, WHO)
    ],
)
def test_who_dies_at_any_moment_of_a_step_leaves_a_turn_that_ends_once(
    docent: Docent, server: Sensible, deaths: Path, moment: str, who: str
) -> None:
    reply = answered(docent, deaths, f"{moment} {who}")
    assert_once(docent, server, reply)
    assert reply["mode"] == "model"


@every_moment
def test_a_reply_that_is_in_the_journal_is_never_asked_for_again(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    roles = [role for role in THINKING if role not in BESIDE_SEARCH]
    reply = answered(docent, deaths, *(f"after_journal {role}" for role in roles))
    assert_once(docent, server, reply)
    assert set(server.server.prompts()) == set(THINKING)


@every_moment
@pytest.mark.parametrize("role", sorted(BESIDE_SEARCH))
def test_one_of_three_at_intake_dies_after_its_reply_and_asks_once(
    docent: Docent, server: Sensible, deaths: Path, role: str
) -> None:
    reply = answered(docent, deaths, f"after_journal {role}")
    assert_once(docent, server, reply, beside=BESIDE_SEARCH - {role})


@every_moment
def test_what_a_search_kept_and_what_watchers_were_told_take_effect_once(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    lines = ("after_keeping search", "after_journal response", "after_telling response")
    message = "Where does the watter go if I press the button twice, and why?"
    reply = answered(docent, deaths, *lines, message=message)
    assert_once(docent, server, reply, beside=BESIDE_SEARCH)
    steps = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body["steps"]
    (search,) = [step for step in steps if step["role"] == "search"]
    assert search["attempt"] == 2
    assert search["wrote"]["search_stats"]["cached"]
    assert reply["reply"].startswith(read(docent, reply["turn_id"]))


@every_moment
@pytest.mark.parametrize("ends", ["completed", "awaiting_user"])
def test_the_manager_dies_around_the_commit_that_ends_a_turn_and_all_of_it_is_there_once(
    docent: Docent, server: Sensible, deaths: Path, ends: str
) -> None:
    if ends == "awaiting_user":
        server.says("essence", {"unclear": "missing_context"})
        server.says("clarification", {"message": "I know the Teapot. What about it?"})
    reply = answered(docent, deaths, "before_commit_of_end manager", "after_commit_of_end manager")
    assert_once(docent, server, reply, ends=ends)


@every_moment
def test_a_manager_that_dies_with_many_turns_in_hand_ends_each_of_them_once(
    docent: Docent, server: Sensible, deaths: Path
) -> None:
    moments = ("before_claim", "before_finish_of_several", "before_commit_of_several")
    lines = [f"{moment} manager" for moment in (*moments, "after_commit_of_several")]
    deaths.write_text("\n".join(lines))
    turns = begin(docent, 8)
    assert_answered_once(docent, turns)
    assert deaths.read_text() == ""
    charged = sum(
        docent.call("GET", f"/api/turns/{turn}/").body["usage"]["model_calls"] for turn in turns
    )
    assert charged == len(server.server.ledger)


@pytest.fixture
def island(tmp_path: Path) -> Path:
    """A folder of three pages."""
    folder = tmp_path / "island"
    folder.mkdir()
    for name, text in ISLAND.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def taken_in(docent: Docent, query: Query, deaths: Path, folder: Path, *moments: str) -> None:
    """Have a worker ingest the folder into `stormy` while it dies; return when that has ended."""
    deaths.write_text("\n".join(f"{moment} ingest" for moment in moments))
    take_in(docent, folder, "stormy", "--background")
    until = time.monotonic() + PATIENCE_SECONDS
    while query("SELECT FROM knowledge_ingest WHERE status IN ('queued', 'running')"):
        assert time.monotonic() < until, f"still to come: {deaths.read_text()}"
        time.sleep(0.2)
    assert deaths.read_text() == "", f"nobody came to: {deaths.read_text()}"


def assert_as_calm(query: Query) -> None:
    """What was stored, counted, removed and reported is what an undisturbed run leaves."""
    assert rows(query, "stormy") == rows(query, "calm")
    assert query(BESIDE, "stormy") == query(BESIDE, "calm")


def assert_described_once(server: Sensible, query: Query) -> None:
    """The reply that was in the journal at the first death was not asked for again.

    Others were under way then, and may have been.
    """
    asked = Counter(call.user for call in server.server.ledger)
    assert len(asked) == len(ISLAND)
    assert max(asked.values()) <= 2
    ((first,),) = query(FIRST, list(asked))
    assert asked[first] == 1


@every_moment
def test_an_ingest_whose_workers_die_at_every_moment_describes_and_stores_each_page_once(
    docent: Docent, server: Sensible, deaths: Path, query: Query, island: Path
) -> None:
    taken_in(docent, query, deaths, island, *TO_THE_END)
    assert_described_once(server, query)
    before = len(server.server.ledger)
    take_in(docent, island, "calm")
    assert_as_calm(query)
    (island / "pier.md").write_text("# pier\n\nThe pier is gone, and nobody paints it.")
    (island / "crane.md").unlink()
    taken_in(docent, query, deaths, island, *TO_THE_REMOVAL)
    assert len(server.server.ledger) == before + 1
    take_in(docent, island, "calm")
    assert_as_calm(query)
