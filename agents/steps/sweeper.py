"""Sweeper: rings again what went unheard, frees what was lost, ends what is overdue.

A process of its own that works from PostgreSQL alone, so the outage it is there to notice
cannot silence it. Any number may run; an advisory lock lets one work at a time.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import redis
from django.conf import settings
from django.db import Error, connection, transaction
from django.db.models import F, Q
from django.utils.module_loading import import_string
from django.utils.timezone import now

from agents import envelopes
from agents.errors import AgentError
from agents.llm.journal import lose_unheard
from agents.models import Envelope, Step
from agents.names import SPECIALISTS, Role, Status
from agents.steps import doorbell, events, model_context, presence, steps
from agents.trace import queues, tally
from knowledge import liveness, upkeep
from knowledge.identifiers import INGEST_QUEUE
from knowledge.ingestion import jobs, multilingual, schedule
from knowledge.models import Ingest

log = logging.getLogger(__name__)

EVERY_SECONDS = 2.0
UNHEARD_AFTER = timedelta(seconds=5)
UNHEARD_IN_A_FULL_QUEUE_AFTER = timedelta(seconds=60)
LOCK = 0x0D0CE27
BATCH = 500


class UntakenError(AgentError):
    """Nobody took this step while there was time for it."""


def run() -> None:
    """Sweep until the process is told to stop."""
    plan_vectors()
    telemetry = import_string(settings.TRACES)() if settings.TRACES else None
    if telemetry:
        telemetry.start()
    while True:
        presence.announce([presence.SWEEPER])
        try:
            counts = sweep()
            if any(counts.values()):
                swept = ", ".join(f"{count} {duty}" for duty, count in counts.items() if count)
                log.warning("swept: %s", swept)
            report_deaf()
            ended = tally.count_ended()
            if telemetry and ended:
                telemetry.offer(ended)
        except Error as error:
            log.warning("PostgreSQL is away: %s", error)
            connection.close()
        time.sleep(EVERY_SECONDS)


def plan_vectors() -> None:
    """Have the vectors made that a setting asks for and collections lack."""
    try:
        with sole_sweeper() as sole:
            if sole:
                _enqueue(multilingual.plan_missing())
    except Error as error:
        log.warning("PostgreSQL is away: %s", error)
        connection.close()


def sweep() -> dict[str, int]:
    """Do one round; return how often each duty was done."""
    with sole_sweeper() as sole:
        if not sole:
            return {}
        return {
            "expired": expire_overdue(),
            "done without": do_without_late(),
            "freed": free_lost(),
            "calls lost": lose_unheard(),
            "rung": ring_unheard(),
            "ingests rung": ring_ingests(),
            "sources due": read_sources(),
            "calibrations due": calibrate_collections(),
        }


@contextmanager
def sole_sweeper() -> Iterator[bool]:
    """Hold the sweepers' advisory lock; yields False when another holds it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        locked = bool(cursor.fetchone()[0])
        try:
            yield locked
        finally:
            if locked:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def expire_overdue() -> int:
    """End turns whose deadline has passed."""
    overdue = Envelope.objects.filter(status=Status.RUNNING, deadline__lt=now())
    ids = overdue.values_list("pk", flat=True)[:BATCH]
    return sum(_attempt(envelopes.expire, envelope_id) for envelope_id in ids)


def do_without_late() -> int:
    """Have analyses go on without the specialists that nobody took while there was time for them.

    Those at work know by themselves when to stop.
    """
    late = Step.objects.filter(
        role__in=SPECIALISTS,
        status=Step.Status.READY,
        envelope__status=Status.RUNNING,
        envelope__deadline__lt=now() + model_context.for_the_answer(),
    ).select_related("envelope")
    without = partial(steps.do_without, reason="time", error=UntakenError())
    return sum(_attempt(without, step) for step in late[:BATCH])


def free_lost() -> int:
    """Make running steps ready again whose worker is gone; set aside those tried too often."""
    running = Step.objects.filter(status=Step.Status.RUNNING, envelope__status=Status.RUNNING)
    workers = running.order_by("worker").values_list("worker", flat=True).distinct()
    dead = [worker for worker in workers if liveness.died(worker)]
    lost = running.filter(Q(lease_until__lt=now()) | Q(worker__in=dead))[:BATCH]
    return sum(_attempt(free, step) for step in lost)


def free(lost: Step) -> bool:
    """Give a lost step back, or set it aside; False when somebody took or ended it meanwhile."""
    with transaction.atomic():
        # Somebody may be stopped while holding it, and the next sweep comes soon.
        unlocked = Envelope.objects.select_for_update(skip_locked=True)
        envelope = unlocked.filter(pk=lost.envelope_id).first()
        rows = Step.objects.select_for_update().filter(
            pk=lost.pk, lease_token=lost.lease_token, status=Step.Status.RUNNING
        )
        step = rows.first()
        if envelope is None or envelope.ended or step is None:
            return False
        if step.attempt < Step.ATTEMPTS:
            rows.update(status="ready", lease_token=None, lease_until=None, rung_at=now())
            transaction.on_commit(partial(_ring, step), robust=True)
            return True
        if not steps.can_do_without(step):
            envelopes.quarantine(envelope, step, envelopes.LostError())
            return True
    return steps.do_without(step, "fault", envelopes.LostError())


def _attempt(duty: Callable[[Any], bool], subject: object) -> bool:
    """Do one duty; one that can't be done must not keep the others from being done."""
    try:
        return duty(subject)
    except (Error, ValueError):
        log.exception("the sweeper could not do its duty for %s: %r", subject, duty)
        return False


def ring_unheard() -> int:
    """Ring for ready steps nobody took. A queue that still holds bells is only busy."""
    ready = Step.objects.filter(
        status=Step.Status.READY,
        envelope__status=Status.RUNNING,
        available_at__lte=now(),
    ).filter(Q(rung_at__lt=F("available_at")) | Q(rung_at__lt=now() - UNHEARD_AFTER))
    unheard = list(ready.order_by("available_at")[:BATCH])
    busy = {role for role in {step.role for step in unheard} if _length(Role(role).queue)}
    due = [
        step
        for step in unheard
        if step.role not in busy or step.rung_at < now() - UNHEARD_IN_A_FULL_QUEUE_AFTER
    ]
    Step.objects.filter(pk__in=[step.pk for step in due]).update(rung_at=now())
    for step in due:
        _ring(step)
    return len(due)


def ring_ingests() -> int:
    """Ring for ingests that wait or whose worker died, unless the queue still holds bells."""
    jobs.release_dead()
    overdue = jobs.waiting().filter(created__lt=now() - UNHEARD_AFTER)[:BATCH]
    if not overdue or _length(INGEST_QUEUE):
        return 0
    return _enqueue(list(overdue))


def read_sources() -> int:
    """Have the repositories and sitemaps read again that are due."""
    return _enqueue(schedule.plan_due())


def calibrate_collections() -> int:
    """Have the thresholds found of the collections that came to rest."""
    return _enqueue(upkeep.plan_calibrations())


def _enqueue(planned: Sequence[Ingest]) -> int:
    for job in planned:
        jobs.enqueue(job)
    return len(planned)


def _ring(step: Step) -> None:
    doorbell.ring(step.envelope_id, step.number, Role(step.role))


def _length(queue: str) -> int:
    try:
        return int(events.connection().llen(queue))
    except redis.RedisError:
        return 0


def report_deaf() -> None:
    """Say which queues have workers that claim to listen and take nothing."""
    if deaf := queues.deaf_queues():
        log.warning("alive but deaf, restart their workers: %s", ", ".join(deaf))
        presence.report_deaf([queues.QUEUES[name] for name in deaf])
