"""Steps: whatever is delivered, repeated or killed, each takes effect once."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now

from agents import envelopes, models
from agents.contract import Contract, Result, View
from agents.decision import Decision, Stage
from agents.errors import AgentError
from agents.manager import route
from agents.models import Envelope, Fault, Step
from agents.names import Role, Status
from agents.steps import step_lease, sweeper
from agents.steps.records import Claim, Conclusion
from agents.steps.steps import fail, finish, perform_one_by_one
from tests.agents.claiming import claim, claimed
from tests.conftest import Begin


def to(*roles: Role) -> Conclusion:
    return Conclusion(decision=Decision(Stage.INTAKE, roles))


def lapse(envelope: Envelope, number: int) -> None:
    """Let the lease of a step run out, and the sweeper see it."""
    envelope.steps.filter(number=number).update(lease_until=now() - timedelta(seconds=1))
    sweeper.sweep()


@pytest.fixture
def running(begin: Begin) -> Envelope:
    """A turn whose manager has just asked guardrails and search: steps 2 and 3."""
    envelope = begin()
    finish(claimed(envelope.pk, 1), to(Role.GUARDRAILS, Role.SEARCH))
    envelope.refresh_from_db()
    return envelope


def test_a_repeated_ring_finds_the_step_taken(begin: Begin) -> None:
    envelope = begin()
    assert claim(envelope.pk, 1) is not None
    assert claim(envelope.pk, 1) is None


def test_a_finished_step_is_not_done_again(begin: Begin) -> None:
    envelope = begin()
    done: list[int] = []

    def work(step: Claim) -> Conclusion:
        done.append(step.number)
        return to(Role.LANG)

    perform_one_by_one(Role.MANAGER, work)
    perform_one_by_one(Role.MANAGER, work)
    assert done == [1]
    assert envelope.steps.count() == 2


def test_a_ring_for_a_step_that_does_not_exist_is_dropped(begin: Begin) -> None:
    assert claim(begin().pk, 7) is None


def test_a_step_that_is_not_due_is_not_taken(begin: Begin) -> None:
    envelope = begin()
    envelope.steps.update(available_at=now() + timedelta(minutes=1))
    assert claim(envelope.pk, 1) is None


def test_a_lapsed_lease_lets_another_worker_take_the_step(begin: Begin) -> None:
    envelope = begin()
    first = claimed(envelope.pk, 1)
    lapse(envelope, 1)
    second = claimed(envelope.pk, 1)
    assert (first.attempt, second.attempt) == (1, 2)


def test_who_lost_the_lease_cannot_finish(begin: Begin) -> None:
    envelope = begin()
    zombie = claimed(envelope.pk, 1)
    lapse(envelope, 1)
    heir = claimed(envelope.pk, 1)
    assert finish(zombie, to(Role.COMMAND)) is None
    assert finish(heir, to(Role.LANG)) is not None
    assert list(envelope.steps.values_list("role", flat=True)) == ["manager", "lang"]


def test_who_lost_the_lease_cannot_fail_it_either(begin: Begin) -> None:
    envelope = begin()
    zombie = claimed(envelope.pk, 1)
    lapse(envelope, 1)
    claimed(envelope.pk, 1)
    fail(zombie, AgentError("too late"))
    assert envelope.steps.get(number=1).status == "running"


def test_renewing_keeps_a_lease_from_lapsing(begin: Begin) -> None:
    envelope = begin()
    token = claimed(envelope.pk, 1).token
    envelope.steps.update(lease_until=now() - timedelta(seconds=1))
    assert step_lease.LEASES.renew({token}) == 1
    assert sweeper.sweep()["freed"] == 0
    assert claim(envelope.pk, 1) is None


def test_a_step_is_taken_three_times_at_most(begin: Begin) -> None:
    envelope = begin()
    for _ in range(Step.ATTEMPTS):
        claimed(envelope.pk, 1)
        lapse(envelope, 1)
    assert claim(envelope.pk, 1) is None


def test_no_connection_is_held_while_an_agent_works(begin: Begin) -> None:
    begin()
    connected: list[bool] = []

    def work(step: Claim) -> Conclusion:
        connected.append(connection.connection is not None)
        return to(Role.LANG)

    perform_one_by_one(Role.MANAGER, work)
    assert connected == [False]


def test_the_last_sibling_calls_the_manager_once(running: Envelope) -> None:
    finish(claimed(running.pk, 2), Conclusion(Result({"guardrails_passed": True})))
    assert not running.steps.filter(number=4).exists()
    finish(claimed(running.pk, 3), Conclusion(Result({"search_quality": "good"})))
    assert running.steps.get(number=4).role == Role.MANAGER
    assert running.steps.count() == 4
    running.refresh_from_db()
    assert running.payload["guardrails_passed"] is True
    assert running.payload["search_quality"] == "good"
    assert running.target_role == [Role.MANAGER]


def test_requests_of_parallel_agents_are_kept_apart(running: Envelope) -> None:
    for number, reason in ((2, "off_topic"), (3, "insufficient_context")):
        wishes = {"needs_clarification": True, "clarification_reason": reason}
        finish(claimed(running.pk, number), Conclusion(Result(wishes)))
    running.refresh_from_db()
    requests = running.payload["clarification_requests"]
    assert requests["guardrails"]["reason"] == "off_topic"
    assert requests["search"]["reason"] == "insufficient_context"


def test_a_failed_attempt_is_due_again_later(running: Envelope) -> None:
    fail(claimed(running.pk, 2), AgentError("the provider is away"))
    step = running.steps.get(number=2)
    assert step.status == "ready"
    assert step.available_at > now()
    assert "the provider is away" in step.error


def test_three_failures_quarantine_the_step_and_tell_the_user_an_error_id(
    running: Envelope,
) -> None:
    for _ in range(Step.ATTEMPTS):
        running.steps.filter(number=2).update(available_at=now())
        fail(claimed(running.pk, 2), AgentError("poison"))
    running.refresh_from_db()
    assert running.status == Status.FAILED
    assert running.steps.get(number=2).status == "quarantined"
    assert running.steps.get(number=3).status == "cancelled"
    fault = Fault.objects.get(code=running.error_id)
    assert "poison" in fault.summary
    assert running.error_id in running.payload["response"]
    assert "poison" not in running.payload["response"]


def test_a_broken_contract_is_not_tried_again(begin: Begin) -> None:
    envelope = begin()

    def work(step: Claim) -> Conclusion:
        return Conclusion(Result(Contract(Role.LANG, View, ()).checked({"target_role": "search"})))

    perform_one_by_one(Role.MANAGER, work)
    envelope.refresh_from_db()
    assert envelope.status == Status.FAILED
    assert "lang wrote 'target_role'" in Fault.objects.get(code=envelope.error_id).summary


def test_a_cancelled_turn_starts_nothing_more(running: Envelope) -> None:
    busy = claimed(running.pk, 2)
    assert envelopes.cancel(running.pk) is True
    assert claim(running.pk, 3) is None
    assert finish(busy, Conclusion(Result({"guardrails_passed": True}))) is None
    assert envelopes.cancel(running.pk) is False
    running.refresh_from_db()
    assert running.status == Status.CANCELLED


def test_a_turn_that_was_forgotten_meanwhile_is_left_alone(begin: Begin) -> None:
    envelope = begin()
    busy = claimed(envelope.pk, 1)
    envelope.delete()
    assert finish(busy, to(Role.LANG)) is None
    assert finish(busy, Conclusion(decision=Decision(Stage.COMMAND, ends=Status.COMPLETED))) is None
    fail(busy, AgentError("nobody cares"))
    assert not Step.objects.exists()


def test_nothing_starts_after_the_deadline(begin: Begin) -> None:
    envelope = begin()
    Envelope.objects.update(deadline=now() - timedelta(seconds=1))
    assert claim(envelope.pk, 1) is None


def test_a_turn_that_goes_round_too_often_is_stopped(running: Envelope, settings: Any) -> None:
    settings.MAX_PROCESS_COUNT = 2
    finish(claimed(running.pk, 2), Conclusion())
    finish(claimed(running.pk, 3), Conclusion())
    perform_one_by_one(Role.MANAGER, route)
    running.refresh_from_db()
    assert running.status == Status.FAILED
    assert "MAX_PROCESS_COUNT" in Fault.objects.get().summary


def test_an_ended_turn_stays_as_it_ended(begin: Begin) -> None:
    envelope = begin()
    finish(
        claimed(envelope.pk, 1), Conclusion(decision=Decision(Stage.COMMAND, ends=Status.COMPLETED))
    )
    assert envelopes.cancel(envelope.pk) is False
    envelope.refresh_from_db()
    assert envelope.status == Status.COMPLETED


@pytest.mark.parametrize(
    "change",
    [
        {"status": "running", "lease_token": None},
        {"started": now(), "ended": now() - timedelta(seconds=5)},
    ],
    ids=["running without a lease", "ended before it started"],
)
def test_the_database_refuses_impossible_steps(begin: Begin, change: dict[str, Any]) -> None:
    steps = begin().steps.all()
    with pytest.raises(IntegrityError):
        steps.update(**change)


def test_a_number_exists_once_in_an_envelope(begin: Begin) -> None:
    envelope = begin()
    with pytest.raises(IntegrityError):
        Step.objects.create(envelope=envelope, number=1, batch=0, role="lang", stage="lang")


def test_a_worker_whose_clock_is_behind_can_still_end_a_turn(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = begin()
    step = claimed(envelope.pk, 1)
    monkeypatch.setattr(models, "now", lambda: now() - timedelta(minutes=1))
    finish(step, Conclusion(decision=Decision(Stage.COMMAND, ends=Status.COMPLETED)))
    envelope.refresh_from_db()
    assert envelope.status == Status.COMPLETED


@pytest.mark.parametrize("text", ["null \0 character", "half \ud800"], ids=["null", "half"])
def test_an_outcome_the_database_refuses_is_a_failed_attempt(begin: Begin, text: str) -> None:
    envelope = begin()
    finish(claimed(envelope.pk, 1), to(Role.RESPONSE))
    perform_one_by_one(Role.RESPONSE, lambda _: Conclusion(Result({"response": text})))
    step = envelope.steps.get(number=2)
    assert (step.status, step.attempt) == ("ready", 1)
    assert step.error


@pytest.mark.parametrize("text", ["null \0 character", "half \ud800"], ids=["null", "half"])
def test_an_error_may_quote_what_the_database_refuses(begin: Begin, text: str) -> None:
    envelope = begin()
    for _ in range(Step.ATTEMPTS):
        envelope.steps.update(available_at=now())
        fail(claimed(envelope.pk, 1), AgentError(text))
    envelope.refresh_from_db()
    assert envelope.status == Status.FAILED
    assert Fault.objects.get(code=envelope.error_id).details


def test_the_end_of_a_turn_waits_for_the_disk_and_its_steps_do_not(begin: Begin) -> None:
    envelope = begin()
    with connection.cursor() as cursor, transaction.atomic():
        finish(claimed(envelope.pk, 1), to(Role.LANG))
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("off",)
        envelope.refresh_from_db()
        envelopes.end(envelope, Status.COMPLETED)
        cursor.execute("SHOW synchronous_commit")
        cursor_says = cursor.fetchone()
        cursor.execute("SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'")
        assert cursor_says == cursor.fetchone()
