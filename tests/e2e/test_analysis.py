"""Analysis, end to end: specialists that work at the same time, and workers killed in any of them.

Who dies is alone in its step: of calls that others have under way beside it, nobody can tell.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.names import SPECIALISTS
from assistant.lab import scripted_analysis
from assistant.lab.model_server import Call, Response
from assistant.lab.scripted_analysis import ENGLISH, Analyst
from tests.e2e.conftest import Docent, Stack, take_in
from tests.e2e.test_crashes import endings
from tests.sensible import Sensible

ONE_BY_ONE = [[role.value] for role in SPECIALISTS]
MOMENTS = ("during_work", "after_journal", "after_call", "before_finish", "after_commit")
# These call no tool here.
WITHOUT_TOOLS = {role for role, (tools, _) in scripted_analysis.GIVES.items() if not tools}
ALWAYS = ("requirement_extractor", "after_call")


@pytest.fixture(scope="module")
def archive(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Docent:
    """Docent with an act and a policy."""
    folder = tmp_path_factory.mktemp("archive")
    for name, text in ENGLISH.pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    take_in(stack.docent, folder, "archive")
    return stack.docent


@pytest.fixture
def docent(archive: Docent, stack: Stack, server: Sensible) -> Iterator[Docent]:
    """The same with the route open; every test begins without calls."""
    server.reset()
    with stack.switched(ROUTES=["documentation", "analysis"]):
        yield archive


def play(server: Sensible, steps: list[list[str]]) -> None:
    for prompt, reply in scripted_analysis.replies(ENGLISH, steps).items():
        server.says(prompt, reply)


def analysed(docent: Docent) -> dict[str, Any]:
    """Ask, and return the reply once the turn has ended."""
    asked = {"message": ENGLISH.question, "collections": ["archive"], "wait": False}
    begun = docent.call("POST", "/api/chat/", asked)
    assert begun.status == 202, begun.body
    (reply,) = endings(docent, [begun.body["turn_id"]])
    return reply


def assert_whole(docent: Docent, reply: dict[str, Any], steps: list[list[str]]) -> None:
    """It ended once, with everything that the specialists gave."""
    assert reply["status"] == "completed", reply
    assert reply["route"] == "analysis"
    assert {each["citation_status"] for each in reply["citations"]} == {"verified"}
    trace = docent.call("GET", f"/api/turns/{reply['turn_id']}/trace/").body
    outputs = trace["analysis"]["agent_outputs"]
    assert set(outputs) == {role for step in steps for role in step}
    assert not [each["reason"] for each in outputs.values() if each["reason"]]
    assert [step["wrote"].get("ends") for step in trace["steps"]].count("completed") == 1


def meeting(analyst: Analyst, *roles: str) -> dict[str, Callable[[Call], Response]]:
    """Return replies of specialists who get one only once all of them have asked."""
    missing, all_there = set(roles), threading.Event()

    def of(role: str) -> Callable[[Call], Response]:
        usual = analyst.specialist(role)

        def reply(call: Call) -> Response:
            missing.discard(role)
            if not missing:
                all_there.set()
            said = usual(call)
            assert isinstance(said, Response)
            said.until = all_there
            return said

        return reply

    return {role: of(role) for role in roles}


def test_specialists_of_a_step_work_at_the_same_time(docent: Docent, server: Sensible) -> None:
    play(server, scripted_analysis.STEPS)
    together = scripted_analysis.STEPS[1]
    for role, reply in meeting(Analyst(ENGLISH), *together).items():
        server.says(role, reply)
    assert_whole(docent, analysed(docent), scripted_analysis.STEPS)


def kill_at(stack: Stack, moment: str, reply: Callable[[Call], Response]) -> Any:
    """Return a reply upon which the orchestrator's worker is to die at this moment."""

    def saying(call: Call) -> Response:
        stack.deaths.write_text(f"{moment} orchestrator")
        return reply(call)

    return saying


# Of the orchestrator's second phase: once the last specialist has, or it was given, its reply.
SYNTHESIS_MOMENTS = ("during_work", "after_journal", "before_finish", "after_commit")


@pytest.mark.every_moment
@pytest.mark.parametrize("moment", SYNTHESIS_MOMENTS)
def test_a_worker_killed_while_the_answer_is_made_costs_no_call_and_no_output(
    docent: Docent, stack: Stack, server: Sensible, moment: str
) -> None:
    play(server, ONE_BY_ONE)
    analyst = Analyst(ENGLISH)
    before = moment == "during_work"
    prompt = SPECIALISTS[-1].value if before else "synthesis"
    reply: Any = analyst.specialist(prompt) if before else analyst.synthesis
    server.says(prompt, kill_at(stack, moment, reply))
    assert_paid_once(stack, server, docent, analysed(docent))


def assert_paid_once(stack: Stack, server: Sensible, docent: Docent, reply: dict[str, Any]) -> None:
    assert stack.deaths.read_text() == "", "nobody came to this moment"
    assert_whole(docent, reply, ONE_BY_ONE)
    expected = Counter(
        {each: 1 + (each not in WITHOUT_TOOLS) for each in scripted_analysis.GIVES}
    ) + Counter(orchestrator=1, synthesis=1)
    asked = Counter(server.server.prompts())
    assert {prompt: asked[prompt] for prompt in expected} == expected
    assert reply["usage"]["model_calls"] == asked.total()


def deaths() -> Iterator[Any]:
    for moment in ("during_work", "after_journal", "before_finish", "after_commit"):
        yield pytest.param("orchestrator", moment, marks=pytest.mark.every_moment)
    for role in scripted_analysis.GIVES:
        for moment in MOMENTS:
            if moment == "after_call" and role in WITHOUT_TOOLS:
                continue
            marks: Any = () if (role, moment) == ALWAYS else pytest.mark.every_moment
            yield pytest.param(role, moment, marks=marks)


@pytest.mark.parametrize(("role", "moment"), list(deaths()))
def test_a_worker_killed_in_a_specialist_costs_no_call_and_no_output(
    docent: Docent, stack: Stack, server: Sensible, role: str, moment: str
) -> None:
    play(server, ONE_BY_ONE)
    stack.deaths.write_text(f"{moment} {role}")
    assert_paid_once(stack, server, docent, analysed(docent))
