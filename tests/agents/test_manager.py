"""The manager: everything that is ready is decided at once, and each decision stands alone."""

from datetime import timedelta

from django.utils.timezone import now

from agents import envelopes
from agents.decision import Decision, Stage
from agents.errors import AgentError
from agents.manager import route
from agents.models import Envelope
from agents.names import Role, Status
from agents.steps import events
from agents.steps.doorbell import ring
from agents.steps.records import Claim, Conclusion
from agents.steps.steps import AT_ONCE, finish, perform_in_batches
from tests.agents.claiming import claim
from tests.conftest import Begin


def to(*roles: Role) -> Conclusion:
    return Conclusion(decision=Decision(Stage.INTAKE, roles))


def roles(envelope: Envelope) -> list[str]:
    return list(envelope.steps.values_list("role", flat=True))


def test_a_manager_does_all_that_is_ready(begin: Begin) -> None:
    turns = [begin() for _ in range(AT_ONCE + 2)]
    perform_in_batches(Role.MANAGER, route)
    assert {tuple(roles(turn)) for turn in turns} == {("manager", "lang")}


def test_a_manager_leaves_what_another_has_taken(begin: Begin) -> None:
    busy, free = begin(), begin()
    other = claim(busy.pk, 1)
    assert other
    perform_in_batches(Role.MANAGER, route)
    assert roles(busy) == ["manager"]
    assert roles(free) == ["manager", "lang"]
    assert finish(other, to(Role.LANG)) is not None


def test_a_manager_starts_nothing_in_a_turn_that_is_overdue_or_over(begin: Begin) -> None:
    overdue, cancelled = begin(), begin()
    Envelope.objects.filter(pk=overdue.pk).update(deadline=now() - timedelta(seconds=1))
    envelopes.cancel(cancelled.pk)
    perform_in_batches(Role.MANAGER, route)
    assert roles(overdue) == roles(cancelled) == ["manager"]


def test_one_decision_the_database_refuses_does_not_keep_the_others_from_being_taken(
    begin: Begin,
) -> None:
    poison, *healthy = (begin() for _ in range(3))

    def work(step: Claim) -> Conclusion:
        notes = {"route": "null \0 character"} if step.envelope_id == poison.pk else {}
        return Conclusion(decision=Decision(Stage.LANG, (Role.LANG,), notes=notes))

    perform_in_batches(Role.MANAGER, work)
    assert [roles(turn) for turn in healthy] == [["manager", "lang"]] * 2
    step = poison.steps.get()
    assert (step.status, step.attempt) == ("ready", 1)
    assert step.error


def test_an_error_in_one_decision_does_not_keep_the_others_from_being_taken(begin: Begin) -> None:
    poison, *healthy = (begin() for _ in range(3))

    def work(step: Claim) -> Conclusion:
        if step.envelope_id == poison.pk:
            raise AgentError("no decision")
        return to(Role.LANG)

    perform_in_batches(Role.MANAGER, work)
    assert [roles(turn) for turn in healthy] == [["manager", "lang"]] * 2
    assert "no decision" in poison.steps.get().error


def test_turns_that_end_and_turns_that_go_on_are_decided_together(begin: Begin) -> None:
    ending, ongoing = begin(), begin()

    def work(step: Claim) -> Conclusion:
        ends = Status.COMPLETED if step.envelope_id == ending.pk else None
        to = () if ends else (Role.LANG,)
        return Conclusion(decision=Decision(Stage.COMMAND, to, ends=ends))

    perform_in_batches(Role.MANAGER, work)
    ending.refresh_from_db()
    assert ending.status == Status.COMPLETED
    assert roles(ongoing) == ["manager", "lang"]


def test_a_bell_that_hangs_calls_the_manager_for_every_step(begin: Begin) -> None:
    bells = events.connection()
    bells.delete(Role.MANAGER.queue, Role.LANG.queue)
    envelope = begin()
    for number in (1, 2):
        ring(envelope.pk, number, Role.MANAGER)
        ring(envelope.pk, number, Role.LANG)
    assert (bells.llen(Role.MANAGER.queue), bells.llen(Role.LANG.queue)) == (1, 2)
