"""Toolbox: what calls come to, each effect once, and nothing done that was called too late."""

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils.timezone import now

from agents import envelopes
from agents.llm.requests import ToolCall
from agents.models import Envelope, Fault, ToolRun
from agents.names import Role
from agents.steps.records import Claim
from agents.steps.step_lease import LapsedError
from agents.tools import tool_journal
from agents.tools.flight import ADRIFT, MOST_ADRIFT
from agents.tools.tool import TOOLS
from agents.tools.tool_call import LONGEST_RESULT
from agents.tools.toolbox import LONGEST_ARGUMENTS, MOST_CALLS, Toolbox, at_hand
from tests.agents.tools.bench import Bench, Search, again, effects, step_of, want
from tests.conftest import Begin

REFUND = want("refund", invoice="I-1", amount=20)


def test_a_call_brings_its_result_whole_and_is_a_row(toolbox: Toolbox, bench: Bench) -> None:
    run = toolbox.call("look", query="steam")
    row = ToolRun.objects.get()
    assert row == run
    assert row.result == {"found": "steam", "rate": None}
    assert (row.tool, row.arguments, row.outcome) == ("look", {"query": "steam"}, "ok")
    assert (row.role, row.number, row.attempts) == ("evaluator", 1, 1)


def test_a_tool_knows_its_caller_from_the_turn_alone(toolbox: Toolbox, bench: Bench) -> None:
    toolbox.call("look", query="I am user:1, bob")
    (caller,) = bench.callers
    assert (caller.owner, caller.user_id, caller.collections) == ("user:7", "anna", ("teapot",))
    assert caller.turn_id == str(toolbox.envelope_id)
    assert 0 < caller.seconds_left() <= 0.5


@pytest.mark.parametrize(
    ("name", "arguments", "outcome", "says"),
    [
        ("fly", "{}", "hallucination", "no tool 'fly' here; there are: look, scan"),
        ("judge", '{"query": "x"}', "hallucination", "no tool 'judge' here"),
        ("look", "{", "validation", "what you gave is not JSON"),
        ("look", "[]", "validation", "what you gave: Input should be"),
        ("look", "{}", "validation", "query: Field required"),
        ("look", '{"query": 5}', "validation", "query: Input should be a valid string"),
        ("look", '{"query": "x", "user_id": "bob"}', "validation", "user_id: Extra inputs"),
        ("look", json.dumps({"query": "x" * 200_000}), "validation", "200,013 bytes; at most 20"),
        ("refund", '{"invoice": "1", "amount": 0}', "validation", "greater than 0"),
        ("refund", '{"invoice": "1", "amount": 1000.01}', "validation", "less than or equal"),
        ("refund", '{"invoice": "1", "amount": "1e9"}', "validation", "less than or equal"),
        ("refund", '{"invoice": "1", "amount": NaN}', "validation", "finite number"),
        ("refund", '{"invoice": "another\'s", "amount": 1}', "validation", "no such invoice"),
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_said_to_the_model_and_not_done(
    toolbox: Toolbox, bench: Bench, name: str, arguments: str, outcome: str, says: str
) -> None:
    (run,) = toolbox.call_all([ToolCall("a", name, arguments)])
    assert (run.outcome, run.result, bench.used) == (outcome, None, [])
    assert says in run.error
    assert len(json.dumps(ToolRun.objects.get().arguments)) < LONGEST_ARGUMENTS
    assert effects() == Fault.objects.count() == 0


def test_what_a_tool_raises_is_for_the_operator_and_a_sentence_for_the_model(
    toolbox: Toolbox, bench: Bench
) -> None:
    bench.faults = [ValueError("password=hunter2"), ValueError("password=hunter2")]
    run = toolbox.call("look", query="x")
    fault = Fault.objects.get()
    assert (run.outcome, run.attempts, run.error_id) == ("execution", 2, fault.code)
    assert fault.code in run.error
    assert "hunter2" not in run.error
    assert "hunter2" in fault.details
    assert "Traceback" in fault.details


def test_a_tool_that_may_be_called_again_is_after_a_failure(toolbox: Toolbox, bench: Bench) -> None:
    bench.faults = [OSError("away")]
    run = toolbox.call("look", query="x")
    assert (run.outcome, run.attempts, len(bench.used)) == ("ok", 2, 2)
    bench.faults = [OSError("away")]
    assert toolbox.call("scan", query="x").outcome == "execution"
    assert Fault.objects.count() == 1


@pytest.mark.parametrize("result", [object(), "x" * (LONGEST_RESULT + 1)])
def test_a_result_that_cannot_be_kept_is_a_failure(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch, result: object
) -> None:
    look = TOOLS["scan"]
    monkeypatch.setitem(TOOLS, "scan", replace(look, function=lambda *_: result))
    assert toolbox.call("scan", query="x").outcome == "execution"


def test_a_tool_that_hangs_is_late_and_what_it_finds_later_does_not_count(
    toolbox: Toolbox, bench: Bench
) -> None:
    bench.hang = threading.Event()
    run = toolbox.call("look", query="x")
    assert (run.outcome, run.attempts) == ("timeout", 2)
    assert Fault.objects.get().summary.startswith("ToolTimeout: look was not done after 0.5 s")
    bench.hang.set()
    settle("look")
    assert list(ToolRun.objects.values_list("outcome", flat=True)) == ["timeout"]


def settle(tool: str) -> None:
    """Return when no thread of a tool goes on that nobody waits for."""
    until = time.monotonic() + 10
    while ADRIFT.count(tool) and time.monotonic() < until:
        time.sleep(0.02)
    assert ADRIFT.count(tool) == 0


def test_an_effect_that_was_told_to_be_too_late_never_comes(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the server is not told when to end what hangs."""
    monkeypatch.setattr(tool_journal, "limit", lambda seconds: None)
    bench.hang = threading.Event()
    (run,) = toolbox.call_all([REFUND])
    assert run.outcome == "timeout"
    assert "Nothing was changed" in run.error
    bench.hang.set()
    settle("refund")
    assert effects() == 0
    bench.hang = None
    (later,) = toolbox.call_all([REFUND])
    assert (later.outcome, effects()) == ("ok", 1)


def test_an_effect_that_is_committed_while_it_is_given_up_counts(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is there, and the commit takes as long as who waits needs to lose patience."""
    check, given_up = tool_journal.require_step, threading.Event()
    fault = toolbox._fault

    def slow(token: Any) -> None:
        check(token)
        assert given_up.wait(10)
        time.sleep(0.3)

    def noting(error: BaseException) -> str:
        given_up.set()
        return fault(error)

    monkeypatch.setattr(tool_journal, "limit", lambda seconds: None)
    monkeypatch.setattr(tool_journal, "require_step", slow)
    monkeypatch.setattr(toolbox, "_fault", noting)
    (run,) = toolbox.call_all([REFUND])
    assert (run.outcome, effects(), ToolRun.objects.count()) == ("ok", 1, 1)


def test_the_server_lets_go_of_what_an_effect_holds_that_hangs(
    toolbox: Toolbox, bench: Bench
) -> None:
    bench.hang = threading.Event()
    toolbox.call_all([REFUND])
    waiting = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )
    until = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(waiting)
            if cursor.fetchone() == (0,):
                break
            time.sleep(0.05)
        cursor.execute(waiting)
        assert cursor.fetchone() == (0,)
    bench.hang.set()
    settle("refund")
    assert effects() == 0


def test_a_tool_of_which_many_calls_hang_is_not_called_any_more(
    toolbox: Toolbox, bench: Bench
) -> None:
    ADRIFT.change("scan", MOST_ADRIFT)
    try:
        assert toolbox.call("scan", query="x").outcome == "timeout"
        assert bench.used == []
    finally:
        ADRIFT.change("scan", -MOST_ADRIFT)


def test_a_tool_gets_no_more_time_than_its_turn_has(toolbox: Toolbox, bench: Bench) -> None:
    toolbox.deadline = now() + timedelta(seconds=0.1)
    assert toolbox.call("doze", query="x").outcome == "timeout"
    toolbox.deadline = now() - timedelta(seconds=1)
    assert toolbox.call("doze", query="y").outcome == "timeout"
    assert bench.names() == ["doze"]


def test_calls_of_one_reply_run_at_the_same_time_and_keep_their_order(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(4, timeout=5)
    doze = TOOLS["doze"]

    def meet(arguments: object, caller: object) -> str:
        together.wait()
        return str(arguments)

    monkeypatch.setitem(TOOLS, "doze", replace(doze, function=meet))
    runs = toolbox.call_all([want("doze", number, query=str(number)) for number in range(4)])
    assert [(run.outcome, run.result) for run in runs] == [
        ("ok", f"query='{number}'") for number in range(4)
    ]


def test_further_attempts_of_calls_of_one_reply_run_at_the_same_time_too(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(4, timeout=5)
    before = set[str]()

    def meet(arguments: Search, caller: object) -> str:
        if arguments.query not in before:
            before.add(arguments.query)
            raise OSError("away")
        together.wait()
        return arguments.query

    monkeypatch.setitem(TOOLS, "look", replace(TOOLS["look"], function=meet, seconds=5.0))
    runs = toolbox.call_all([want("look", number, query=str(number)) for number in range(4)])
    assert [(run.outcome, run.result, run.attempts) for run in runs] == [
        ("ok", str(number), 2) for number in range(4)
    ]


def test_effects_come_one_after_another_after_what_stands_before_them(
    toolbox: Toolbox, bench: Bench
) -> None:
    toolbox.call_all(
        [
            want("doze", 1, query="a"),
            want("refund", 2, invoice="1", amount=1),
            want("refund", 3, invoice="2", amount=1),
            want("look", 4, query="b"),
        ]
    )
    assert bench.names() == ["doze", "refund", "refund", "look"]


def test_of_twenty_calls_at_once_the_first_are_made_and_the_rest_refused(
    toolbox: Toolbox, bench: Bench
) -> None:
    runs = toolbox.call_all([want("look", place, query=str(place)) for place in range(20)])
    assert len(bench.used) == MOST_CALLS
    assert [run.outcome for run in runs] == ["ok"] * MOST_CALLS + ["validation"] * 12
    assert "Call it in your next reply" in runs[-1].error


def test_equal_effects_in_one_turn_are_had_once(toolbox: Toolbox, bench: Bench) -> None:
    runs = toolbox.call_all([REFUND, REFUND, want("refund", invoice="I-1", amount=20, note="!")])
    runs += toolbox.call_all([REFUND])
    assert len({json.dumps(run.result) for run in runs}) == effects() == 1
    assert [bool(run.repeats) for run in runs] == [False, True, True, True]
    toolbox.call_all([want("refund", invoice="I-1", amount=21)])
    assert effects() == 2


def test_two_turns_have_an_effect_each(begin: Begin, bench: Bench) -> None:
    for _ in range(2):
        Toolbox.of(step_of(begin())).call_all([REFUND])
    assert effects() == 2


def test_a_step_done_again_finds_its_calls_and_repeats_none(claim: Claim, bench: Bench) -> None:
    wanted = [want("look", query="a"), want("look", query="a"), REFUND, want("fly")]
    first = Toolbox.of(claim).call_all(wanted)
    used = len(bench.used)
    second = Toolbox.of(again(claim)).call_all(wanted)
    assert [run.pk for run in second] == [run.pk for run in first]
    assert (len(bench.used), effects()) == (used, 1)


def test_a_step_done_again_with_other_words_repeats_no_effect(claim: Claim, bench: Bench) -> None:
    Toolbox.of(claim).call_all([REFUND])
    reworded = want("refund", 2, amount=20.0, invoice="I-1", note="as you wished")
    (run,) = Toolbox.of(again(claim)).call_all([reworded])
    assert (run.outcome, run.repeats is not None, effects()) == ("ok", True, 1)


def test_an_effect_whose_row_cannot_be_written_is_not_had(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(token: object) -> None:
        raise ValueError("died before the commit")

    monkeypatch.setattr(tool_journal, "require_step", broken)
    with pytest.raises(ValueError, match="died"):
        toolbox.call_all([REFUND])
    assert (len(bench.used), effects(), ToolRun.objects.count()) == (1, 0, 0)


def test_a_worker_that_lost_its_step_changes_nothing(claim: Claim, bench: Bench) -> None:
    paused = Toolbox.of(claim)
    current = Toolbox.of(again(claim))
    with pytest.raises(LapsedError):
        paused.call_all([REFUND])
    assert effects() == 0
    current.call_all([REFUND])
    assert effects() == 1


def test_a_turn_that_was_cancelled_changes_nothing_any_more(claim: Claim, bench: Bench) -> None:
    bench.hang = threading.Event()
    failures: list[Exception] = []

    def call() -> None:
        try:
            Toolbox.of(claim).call_all([REFUND])
        except LapsedError as error:
            failures.append(error)
        connection.close()

    thread = threading.Thread(target=call)
    thread.start()
    assert bench.held.wait(5)
    envelopes.cancel(claim.envelope_id)
    bench.hang.set()
    thread.join(10)
    assert (len(failures), effects()) == (1, 0)


def test_two_workers_at_one_step_have_its_effect_once(claim: Claim, bench: Bench) -> None:
    """The lease says who may; without it, the key still does."""
    boxes = [replace(Toolbox.of(claim), token=None) for _ in range(2)]
    threads = [threading.Thread(target=box.call_all, args=([REFUND],)) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert effects() == ToolRun.objects.count() == 1
    assert boxes[0].runs == boxes[1].runs


def test_a_commit_that_nobody_heard_of_is_found_and_not_done_again(
    toolbox: Toolbox, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks in the moment of the commit, which the server has made."""
    wrapper = type(connections["default"])
    commit = wrapper.commit
    broken: list[bool] = []

    def breaking(self: Any) -> None:
        commit(self)
        if bench.used and not broken:
            broken.append(True)
            raise OperationalError("the connection was lost")

    monkeypatch.setattr(wrapper, "commit", breaking)
    monkeypatch.setattr("agents.steps.step_lease.PAUSE_SECONDS", 0.01)
    (run,) = toolbox.call_all([REFUND])
    assert (run.outcome, effects(), len(bench.used)) == ("ok", 1, 1)


def test_another_system_is_told_the_same_key_for_the_same_call(claim: Claim, bench: Bench) -> None:
    wanted = want("order", query="cable")
    Toolbox.of(claim).call_all([wanted])
    ToolRun.objects.all().delete()  # the worker died before it was written down
    Toolbox.of(again(claim)).call_all([wanted])
    Toolbox.of(again(claim)).call_all([want("order", query="lamp")])
    first, second, other = [caller.key for caller in bench.callers]
    assert first == second != other
    assert len(first) == 64


def test_what_another_system_did_is_not_known_when_it_fails(toolbox: Toolbox, bench: Bench) -> None:
    bench.faults = [OSError("reset")]
    run = toolbox.call("order", query="cable")
    assert "Whether it had its effect is not known" in run.error


def test_a_replay_finds_what_was_done_and_changes_nothing(
    claim: Claim, toolbox: Toolbox, bench: Bench
) -> None:
    toolbox.call_all([REFUND])
    replay = replace(Toolbox.of(claim), is_live=False)
    other = want("refund", invoice="I-2", amount=1)
    runs = replay.call_all([REFUND, other, want("look", query="x")])
    assert [run.outcome for run in runs] == ["ok", "execution", "ok"]
    assert runs[0] == toolbox.runs[0]
    assert (effects(), ToolRun.objects.count()) == (1, 1)


def test_no_connection_is_held_while_a_tool_without_effect_works(
    toolbox: Toolbox, bench: Bench
) -> None:
    counts: list[int] = []
    doze = TOOLS["doze"]

    def count(*_: object) -> str:
        counts.append(int(connection.connection is not None))
        return "x"

    TOOLS["doze"] = replace(doze, function=count)
    toolbox.call("doze", query="x")
    assert counts == [0]
    assert connection.connection is None


def test_the_effects_of_a_turn_are_known_to_every_step_of_it(
    claim: Claim, toolbox: Toolbox, bench: Bench
) -> None:
    toolbox.call_all([REFUND, want("look", query="x")])
    later = Toolbox.of(step_of(Envelope.objects.get(pk=claim.envelope_id), Role.QUALITY))
    assert [run.tool for run in later.effects()] == ["refund"]


def test_tools_are_at_hand_only_at_a_step() -> None:
    with pytest.raises(LookupError, match="an agent at work"):
        at_hand()
