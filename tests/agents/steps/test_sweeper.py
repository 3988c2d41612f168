"""The sweeper: nothing that was begun is forgotten."""

import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.utils.timezone import now
from pytest_django import Settings

from agents import envelopes
from agents.models import Envelope, Fault, Step
from agents.names import Role, Status
from agents.steps import events, sweeper
from knowledge import liveness
from knowledge.identifiers import INGEST_QUEUE
from knowledge.models import Ingest
from tests import factories
from tests.agents.claiming import bells, claim
from tests.conftest import Begin
from tests.knowledge.islands import island


def unheard(envelope: Envelope) -> None:
    """The bell of the first step was lost a while ago."""
    events.connection().delete(Role.MANAGER.queue)
    long_ago = now() - timedelta(seconds=30)
    envelope.steps.update(available_at=long_ago, rung_at=long_ago)


def test_a_bell_nobody_heard_is_rung_again(begin: Begin) -> None:
    unheard(begin())
    assert sweeper.sweep()["rung"] == 1
    assert bells(Role.MANAGER) == 1


def test_a_bell_that_still_hangs_in_the_queue_is_not_rung_twice(begin: Begin) -> None:
    envelope = begin()
    unheard(envelope)
    sweeper.sweep()
    envelope.steps.update(rung_at=now() - timedelta(seconds=30))
    assert sweeper.sweep()["rung"] == 0


def test_a_step_that_only_just_became_ready_is_left_alone(begin: Begin) -> None:
    begin()
    assert sweeper.sweep()["rung"] == 0


def test_a_retry_is_rung_when_it_is_due(begin: Begin) -> None:
    envelope = begin()
    events.connection().delete(Role.MANAGER.queue)
    envelope.steps.update(rung_at=now() - timedelta(seconds=2), available_at=now())
    assert sweeper.sweep()["rung"] == 1


def test_a_lapsed_lease_makes_the_step_ready(begin: Begin) -> None:
    envelope = begin()
    claim(envelope.pk, 1)
    envelope.steps.update(lease_until=now() - timedelta(seconds=1), worker="elsewhere/1/2/3")
    assert envelope.steps.get().condition(now()) == "lost"
    assert sweeper.sweep()["freed"] == 1
    assert envelope.steps.get().condition(now()) == "queued"


def test_a_running_step_with_a_living_worker_is_left_alone(begin: Begin) -> None:
    envelope = begin()
    claim(envelope.pk, 1)
    assert sweeper.sweep()["freed"] == 0
    assert envelope.steps.get().condition(now()) == "running"


def test_a_step_whose_process_died_is_freed_before_its_lease_lapses(begin: Begin) -> None:
    envelope = begin()
    claim(envelope.pk, 1)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        worker = liveness.identity(process.pid)
        assert not liveness.died(worker)
        process.kill()
    envelope.steps.update(worker=worker)
    assert sweeper.sweep()["freed"] == 1


def test_the_worker_of_another_machine_is_never_called_dead(begin: Begin) -> None:
    assert not liveness.died("another-host/4026531836/1/1")


def test_a_worker_that_dies_on_every_attempt_ends_the_turn_with_an_error_id(begin: Begin) -> None:
    envelope = begin()
    for _ in range(Step.ATTEMPTS):
        claim(envelope.pk, 1)
        envelope.steps.update(lease_until=now() - timedelta(seconds=1))
        sweeper.sweep()
    envelope.refresh_from_db()
    assert envelope.status == Status.FAILED
    assert "died on each of its attempts" in Fault.objects.get(code=envelope.error_id).summary


def test_a_step_that_was_never_started_is_never_called_failed(begin: Begin) -> None:
    envelope = begin()
    for _ in range(5):
        unheard(envelope)
        sweeper.sweep()
    assert envelope.steps.get().attempt == 0
    envelope.refresh_from_db()
    assert envelope.status == Status.RUNNING


def test_an_overdue_turn_expires_with_an_error_id(begin: Begin) -> None:
    envelope = begin()
    Envelope.objects.update(deadline=now() - timedelta(seconds=1))
    assert sweeper.sweep()["expired"] == 1
    envelope.refresh_from_db()
    assert envelope.status == Status.EXPIRED
    assert envelope.error_id in envelope.payload["response"]
    assert envelope.steps.get().status == "cancelled"


@pytest.mark.parametrize(("worth", "status"), [(0.4, Status.COMPLETED), (0, Status.EXPIRED)])
def test_of_an_overdue_turn_an_answer_that_was_to_be_written_anew_goes_out(
    begin: Begin, worth: float, status: Status
) -> None:
    envelope = begin()
    best = {"response": "At noon [C1].", "answer_worth": worth, "answer_form": "written"}
    envelope.payload |= {"best_answer": best, "response": "At ten.", "stage": "response"}
    envelope.deadline = now() - timedelta(seconds=1)
    envelope.save()
    assert sweeper.sweep()["expired"] == 1
    envelope.refresh_from_db()
    assert envelope.status == status
    assert (envelope.payload["response"] == "At noon [C1].") is (status == Status.COMPLETED)
    if status == Status.COMPLETED:
        assert envelope.payload["stage"] == "quality"
        assert envelope.payload["quality_decision"] == "approve_with_reservations"


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({}, Status.COMPLETED),
        ({"citations_used": []}, Status.EXPIRED),
        ({"quality_decision": "regenerate"}, Status.EXPIRED),
        ({"stage": "response"}, Status.EXPIRED),
    ],
)
def test_of_an_overdue_turn_an_answer_that_a_program_checked_goes_out(
    begin: Begin, payload: dict[str, Any], status: Status
) -> None:
    envelope = begin()
    cited = {"response": "At ten [C1].", "citations_used": [factories.CITATION]}
    envelope.payload |= cited | {"stage": "quality"} | payload
    envelope.deadline = now() - timedelta(seconds=1)
    envelope.save()
    sweeper.sweep()
    envelope.refresh_from_db()
    assert envelope.status == status
    assert (envelope.payload["response"] == "At ten [C1].") is (status == Status.COMPLETED)


def test_two_sweepers_do_not_work_at_the_same_time(begin: Begin) -> None:
    unheard(begin())
    swept: list[dict[str, int]] = []

    def second() -> None:
        swept.append(sweeper.sweep())
        connection.close()

    with sweeper.sole_sweeper() as sole:
        assert sole
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert swept == [{}]


def test_a_turn_that_cannot_be_ended_does_not_keep_the_others_from_ending(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison, healthy = begin(), begin()
    Envelope.objects.update(deadline=now() - timedelta(seconds=1))
    honest = envelopes.end

    def end(envelope: Envelope, status: Status, **more: str) -> None:
        if envelope.pk == poison.pk:
            raise IntegrityError("cannot be stored")
        honest(envelope, status, **more)

    monkeypatch.setattr(envelopes, "end", end)
    assert sweeper.sweep()["expired"] == 1
    healthy.refresh_from_db()
    assert healthy.status == Status.EXPIRED


@pytest.mark.django_db(transaction=True)
def test_vectors_that_a_setting_asks_for_are_made_by_a_job_once(settings: Settings) -> None:
    island()
    sweeper.plan_vectors()
    assert not Ingest.objects.exists()
    bells = events.connection().llen(INGEST_QUEUE)
    settings.CROSS_LINGUAL = True
    sweeper.plan_vectors()
    sweeper.plan_vectors()
    assert Ingest.objects.count() == 1
    assert events.connection().llen(INGEST_QUEUE) == bells + 1
