"""The queues as they are seen: what waits, who listens, and what only claims to."""

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from agents.models import Envelope, Step
from agents.names import Role
from agents.steps import events, presence, sweeper
from agents.trace.metrics import overview
from agents.trace.queues import Queue, State, all_queues, announcements, deaf_queues
from knowledge.models import Collection, Ingest
from tests.agents.claiming import claim
from tests.conftest import Begin

SETTLED = 60.0


def listen(*roles: Role, seconds: float = SETTLED) -> None:
    """Announce it, as a worker that has listened for so long."""
    presence.announce([role.queue for role in roles], time.time() - seconds)


def queue(name: str = Role.MANAGER) -> Queue:
    return next(queue for queue in all_queues(announcements()) if queue.name == name)


def wait(envelope: Envelope, seconds: float) -> None:
    """Let the open steps have been due for so long."""
    envelope.steps.update(available_at=now() - timedelta(seconds=seconds))


def history(envelope: Envelope, waited: float, ran: float, **values: Any) -> None:
    """Add a step of search that was done."""
    start = now() - timedelta(seconds=100)
    Step.objects.create(
        envelope=envelope,
        number=envelope.steps.count() + 1,
        batch=1,
        role=Role.SEARCH,
        stage="search",
        **{"status": Step.Status.DONE, "attempt": 1} | values,
        available_at=start,
        started=start + timedelta(seconds=waited),
        ended=start + timedelta(seconds=waited + ran),
    )


def test_every_queue_is_seen_also_when_nothing_ever_happened(db: None) -> None:
    names = [queue.name for queue in all_queues(announcements())]
    assert names == [*Role, "ingest"]


def test_queued_running_lost_and_postponed_are_counted_apart(begin: Begin) -> None:
    turns = [begin() for _ in range(4)]
    running, lost, postponed, _ = turns
    claim(running.pk, 1)
    claim(lost.pk, 1)
    lost.steps.update(lease_until=now() - timedelta(seconds=1))
    postponed.steps.update(available_at=now() + timedelta(seconds=60), attempt=1)
    manager = queue()
    assert (manager.queued, manager.running, manager.lost, manager.postponed) == (1, 1, 1, 1)


def test_the_age_of_a_queue_is_that_of_its_oldest_due_step(begin: Begin) -> None:
    wait(begin(), 5)
    wait(begin(), 50)
    assert 50 <= queue().oldest < 60


def test_median_and_95th_percentile_tell_the_usual_from_the_worst(begin: Begin) -> None:
    envelope = begin()
    for waited in range(21):
        history(envelope, waited, 2 * waited)
    search = queue(Role.SEARCH)
    assert (search.wait.p50, search.wait.p95) == (10, 19)
    assert (search.run.p50, search.run.p95) == (20, 38)
    assert search.done == 21


def test_failed_attempts_are_counted_whether_or_not_another_one_did_it(begin: Begin) -> None:
    envelope = begin()
    history(envelope, 0, 1, attempt=3)
    history(envelope, 0, 1, attempt=3, status=Step.Status.QUARANTINED)
    history(envelope, 0, 1, attempt=1, degraded="timeout: no reply")
    search = queue(Role.SEARCH)
    assert (search.failures, search.degraded) == (5, 1)


def test_what_was_long_ago_is_not_told_as_if_it_were_now(begin: Begin) -> None:
    envelope = begin()
    history(envelope, 1, 1)
    envelope.steps.filter(role=Role.SEARCH).update(created=now() - timedelta(hours=1))
    assert queue(Role.SEARCH).done == 0


def test_an_ingest_that_waits_is_seen_on_its_queue(transactional_db: None) -> None:
    Ingest.objects.create(collection=Collection.objects.create(name="desk"), name="desk.zip")
    assert queue("ingest").queued == 1


def test_workers_are_counted_per_queue(db: None) -> None:
    listen(Role.MANAGER)
    presence.announce([Role.LANG.queue, Role.MANAGER.queue])
    assert (queue().consumers, queue(Role.LANG).consumers) == (2, 1)


def test_a_queue_without_a_worker_is_deserted_and_says_how_to_add_one(db: None) -> None:
    search = queue(Role.SEARCH)
    assert search.state is State.DESERTED
    assert search.add_worker == "python3 manage.py workers search"


def test_a_worker_that_claims_to_listen_and_takes_nothing_is_deaf(begin: Begin) -> None:
    listen(Role.MANAGER)
    wait(begin(), 31)
    assert queue().state is State.DEAF
    assert deaf_queues() == ["manager"]


def test_a_worker_that_has_only_just_started_is_not_called_deaf(begin: Begin) -> None:
    listen(Role.MANAGER, seconds=1)
    wait(begin(), 31)
    assert queue().state is State.BEHIND
    assert deaf_queues() == []


@pytest.mark.parametrize("ended", [True, False], ids=["has just done one", "is at one"])
def test_a_worker_with_more_work_than_time_is_behind_and_not_deaf(
    begin: Begin, ended: bool
) -> None:
    listen(Role.MANAGER)
    other = begin()
    claim(other.pk, 1)
    wait(begin(), 31)
    if ended:
        other.steps.update(status=Step.Status.DONE, ended=now())
    assert queue().state is State.BEHIND
    assert deaf_queues() == []


def test_a_queue_that_is_taken_from_is_working_and_an_empty_one_idle(begin: Begin) -> None:
    listen(Role.MANAGER, Role.LANG)
    begin()
    assert (queue().state, queue(Role.LANG).state) == (State.WORKING, State.IDLE)


def test_without_redis_nobody_claims_to_know_who_listens(db: None) -> None:
    search = next(queue for queue in all_queues(None) if queue.name == "search")
    assert (search.consumers, search.state) == (None, State.UNWATCHED)


def test_the_sweeper_tells_a_deaf_worker_whose_heartbeat_then_stops(begin: Begin) -> None:
    listen(Role.MANAGER, Role.LANG)
    wait(begin(), 31)
    for role in (Role.MANAGER, Role.LANG):
        presence.heartbeat_file(role.queue).unlink()
    sweeper.report_deaf()
    listen(Role.MANAGER, Role.LANG)
    assert not presence.heartbeat_file(Role.MANAGER.queue).exists()
    assert presence.heartbeat_file(Role.LANG.queue).exists()
    events.connection().delete(presence.DEAF)


def test_the_overview_tells_turns_under_way_from_overdue_ones(begin: Begin) -> None:
    begin()
    late = begin()
    Envelope.objects.filter(pk=late.pk).update(deadline=now() - timedelta(seconds=1))
    presence.announce([presence.SWEEPER])
    state = overview()
    assert (state.turns, state.overdue, state.sweepers) == (1, 1, 1)
