"""Chaos: what it counts is there when something went wrong, and its faults do what they say."""

import random
import time
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils.timezone import now

from agents.models import Envelope, ModelCall, Step
from agents.names import Role, Status
from agents.steps import events
from assistant.lab import chaos_stack
from assistant.lab.chaos_load import SESSION
from assistant.lab.chaos_report import CommittedFault, Run, Tally, recoveries, tally
from assistant.lab.chaos_stack import Stack
from assistant.lab.model_server import Call
from conversations.models import Message
from tests import factories

MARK = "000001"
MESSAGES = [{"role": "user", "content": f"Do unused days end? This is case {MARK}."}]
CHANCE = random.Random(1)  # noqa: S311 nothing is secret here
SERVERLESS = Stack([], {"postgres": "", "redis": "false"})

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def envelope() -> Envelope:
    """A turn of a run that ended as it should."""
    envelope = factories.turn(factories.conversation(SESSION + MARK))
    Envelope.objects.filter(pk=envelope.pk).update(process_count=1)
    return envelope


def counts_of(envelope: Envelope, *ledger: Call) -> Tally:
    return tally({str(envelope.pk): MARK}, 0, list(ledger))


def test_a_turn_that_ended_as_it_should_is_no_fault(envelope: Envelope) -> None:
    counts = counts_of(envelope, Call("/", {}, {"messages": MESSAGES}, time.monotonic()))
    assert counts.holds
    assert (counts.turns, counts.hops) == (1, 1)


def test_a_turn_that_still_runs_is_lost(envelope: Envelope) -> None:
    Envelope.objects.filter(pk=envelope.pk).update(status=Status.RUNNING)
    assert counts_of(envelope).lost == 1


def test_a_turn_that_the_database_does_not_know_is_lost() -> None:
    counts = tally({"00000000-0000-0000-0000-000000000000": MARK}, 0, [])
    assert counts.lost == 1
    assert not counts.holds


def test_a_turn_without_an_answer_is_lost(envelope: Envelope) -> None:
    Message.objects.filter(turn=envelope, role=Message.Author.ASSISTANT).delete()
    assert counts_of(envelope).lost == 1


def test_a_turn_that_ended_with_an_error_is_counted(envelope: Envelope) -> None:
    Envelope.objects.filter(pk=envelope.pk).update(status=Status.EXPIRED)
    assert counts_of(envelope).failed == 1


def test_a_second_answer_is_counted(envelope: Envelope) -> None:
    answer = Message.objects.get(turn=envelope, role=Message.Author.ASSISTANT)
    Message.objects.create(conversation=answer.conversation, role=answer.role, text=answer.text)
    assert counts_of(envelope).answered_twice == 1


def test_a_step_that_took_effect_twice_is_counted(envelope: Envelope) -> None:
    Envelope.objects.filter(pk=envelope.pk).update(process_count=2)
    assert counts_of(envelope).steps_twice == 1


def test_an_end_that_was_told_twice_is_counted(envelope: Envelope) -> None:
    events.send(events.event_commands(envelope.target_list, "workflow_complete"))
    assert counts_of(envelope).told_twice == 1


def test_a_call_is_paid_twice_only_if_its_reply_was_stored_before(envelope: Envelope) -> None:
    stored = factories.model_call(envelope, request={"messages": MESSAGES})
    offset = time.time() - time.monotonic()
    at = stored.created.timestamp() - offset
    before, after = (Call("/", {}, {"messages": MESSAGES}, at + apart) for apart in (-1, 1))
    assert counts_of(envelope, before).paid_twice == 0
    assert counts_of(envelope, before, after).paid_twice == 1


def test_what_a_later_step_asks_and_keeps_is_not_paid_twice(envelope: Envelope) -> None:
    request = {"messages": MESSAGES}
    first = factories.model_call(envelope, request=request, step=3)
    offset = time.time() - time.monotonic()
    again = Call("/", {}, {"messages": MESSAGES}, first.created.timestamp() - offset + 1)
    after = first.created + timedelta(seconds=2)
    second = factories.model_call(envelope, request=request, step=3, created=after)
    assert counts_of(envelope, again).paid_twice == 1
    ModelCall.objects.filter(pk=second.pk).update(step_number=9)
    assert counts_of(envelope, again).paid_twice == 0


def test_recovery_lasts_until_the_last_turn_under_way_went_on(envelope: Envelope) -> None:
    other = factories.turn(factories.conversation("chaos-000002"))
    fault = now()
    for number, seconds in ((2, 3), (3, 9)):
        step(envelope, number, fault + timedelta(seconds=seconds))
    step(other, 2, fault + timedelta(seconds=5))
    (recovery,) = recoveries(
        [str(envelope.pk), str(other.pk)],
        [
            CommittedFault("kill web", fault),
            CommittedFault("kill web", fault + timedelta(minutes=1)),
        ],
    )
    assert (recovery.name, recovery.times, recovery.usual, recovery.slowest) == (
        "kill web",
        2,
        2.5,
        5.0,
    )


def step(envelope: Envelope, number: int, ended: Any) -> None:
    Step.objects.create(
        envelope=envelope,
        number=number,
        batch=1,
        role=Role.LANG,
        stage="",
        status=Step.Status.DONE,
        ended=ended,
    )


@pytest.fixture
def rung() -> None:
    """Two rings wait in one of the queues."""
    client = events.connection()
    client.delete(*(role.queue for role in Role))
    client.rpush(Role.LANG.queue, "one", "two")


def waiting() -> list[str]:
    rings: Any = events.connection().lrange(Role.LANG.queue, 0, -1)
    return [*rings]


@pytest.mark.usefixtures("rung")
def test_the_ring_that_has_waited_longest_is_dropped() -> None:
    assert disturbed("drop rings") == "dropped 1 rings"
    assert waiting() == ["two"]


@pytest.mark.usefixtures("rung")
def test_every_ring_is_repeated() -> None:
    assert disturbed("repeat rings").startswith("repeated")
    assert waiting()[:2] == ["one", "two"]
    assert {*waiting()[2:]} == {"one", "two"}


@pytest.mark.usefixtures("rung")
def test_rings_are_put_into_another_order() -> None:
    assert disturbed("reorder rings") == "reordered 2 rings"
    assert waiting() == ["two", "one"]


@pytest.mark.usefixtures("rung")
def test_rings_are_away_while_they_are_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile: list[list[str]] = []
    monkeypatch.setattr("time.sleep", lambda seconds: meanwhile.append(waiting()))
    assert disturbed("delay rings") == "delayed 2 rings"
    assert meanwhile == [[]]
    assert waiting() == ["one", "two"]


def disturbed(name: str) -> str:
    """Have a fault done, by a chance that swaps two; return what it says it did."""
    fault, _ = chaos_stack.FAULTS[name]
    return fault(SERVERLESS, random.Random(1))  # noqa: S311 nothing is secret here


def test_a_given_server_is_restarted_only_by_the_command_for_it() -> None:
    for name in ("restart PostgreSQL", "restart Redis"):
        assert chaos_stack.FAULTS[name][0](SERVERLESS, CHANCE) == ""
    assert chaos_stack.FAULTS["restart Redis"][0](Stack([], {"redis": "true"}), CHANCE)


def test_a_database_with_conversations_is_refused(envelope: Envelope) -> None:
    with pytest.raises(CommandError, match="Give chaos an empty one"):
        call_command("chaos", minutes=0.1)


def test_given_servers_must_both_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_URL")
    with pytest.raises(CommandError, match="both DATABASE_URL and REDIS_URL"):
        call_command("chaos", given=True)


def test_a_report_has_a_row_for_every_figure_and_every_fault(envelope: Envelope) -> None:
    counts = counts_of(envelope)
    faults_done = recoveries([str(envelope.pk)], [CommittedFault("kill web", now())])
    run = Run(counts, faults_done, 7, 10)
    page = run.page()
    assert "| turns lost | 0 |" in page
    assert "| kill web | 1 | 0.0 | 0.0 |" in page
    assert "python3 manage.py chaos --minutes 10 --seed 7" in page
    assert run.as_json()["faults"] == [
        {"name": "kill web", "times": 1, "usual": 0.0, "slowest": 0.0}
    ]
