"""Job lease: the right to work on a job, which one worker at a time has.

A job may be asked for any number of times. Whoever claims it holds it under a lease, and every
item takes effect once.
"""

import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from types import TracebackType

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, QuerySet
from django.utils.timezone import now

from knowledge import liveness
from knowledge.errors import KnowledgeError
from knowledge.ingestion.jobs import JobError, Status, end, release_dead, waiting
from knowledge.lease import Leases
from knowledge.models import Ingest, Item
from knowledge.postgres_text import storable

LEASE = timedelta(seconds=30)
BEAT_SECONDS = 1.0
ATTEMPTS = 3  # without any progress between them


def extend(tokens: Collection[uuid.UUID]) -> set[uuid.UUID]:
    jobs = Ingest.objects.filter(token__in=tokens)
    jobs.update(lease_until=now() + LEASE)
    return {token for token in jobs.values_list("token", flat=True) if token}


LEASES = Leases(extend, LEASE)


class LeaseLost(JobError):
    """Another worker has taken the job over."""


class Cancelled(JobError):
    """Somebody asked for the job to be stopped."""


@dataclass
class JobLease:
    """The right to work on a job, until somebody else has a later token."""

    job: Ingest
    token: uuid.UUID
    current: str = ""
    item: Item | None = None  # the one at hand
    is_cautious: bool = False  # items one by one: earlier attempts made no progress
    last_beat: float = field(default_factory=monotonic)

    @property
    def own_row(self) -> QuerySet[Ingest]:
        """The job, as long as the token is the current one."""
        return Ingest.objects.filter(pk=self.job.pk, token=self.token)

    def beat(self, current: str) -> None:
        """Say what is at hand, about once a second. Raises LeaseLost and Cancelled."""
        self.current = current
        if monotonic() - self.last_beat < BEAT_SECONDS:
            return
        self.last_beat = monotonic()
        self.fence()
        if Ingest.objects.filter(pk=self.job.pk, cancelling=True).exists():
            raise Cancelled

    def say(self, report: dict[str, int], current: str) -> None:
        """Say how far a job without items is, as `beat`; it may be tried again as if begun anew."""
        if report["done"] == report["total"] or monotonic() - self.last_beat >= BEAT_SECONDS:
            self.fence(report=report, attempts=1)
        self.beat(current)

    def fence(self, **values: object) -> None:
        """Renew the lease; inside a transaction, keep the job from others until it ends.

        Raises LeaseLost, on which what the transaction wrote is undone.
        """
        values |= {"lease_until": now() + LEASE, "current": self.current[:1000], "updated": now()}
        if not self.own_row.update(**values):
            raise LeaseLost

    def progress(self) -> None:
        """Fence, and note that an item got done: its worker may die again without blame."""
        self.fence(attempts=1)
        self.job.attempts = 1


@contextmanager
def acquire(ingest_id: uuid.UUID | str) -> Iterator[JobLease | None]:
    """Hold the job for the block; None when there is nothing to do with it.

    However the block ends, the job is left in a state that says so and can be gone on with.
    Being called off or overtaken ends the block quietly.
    """
    lease = claim(ingest_id)
    if lease is None:
        yield None
        return
    with Release(lease), LEASES.renewed(lease.token):
        yield lease


@dataclass(frozen=True)
class Release:
    """Lets go of a job when the block ends."""

    lease: JobLease

    def __enter__(self) -> None:
        """Nothing is to be done before."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        """Leave the job as the error calls for; return whether that is all it was raised for."""
        if isinstance(error, Cancelled):
            end(self.lease.own_row, Status.CANCELLED)
        elif error is not None and not isinstance(error, LeaseLost):
            release(self.lease, error)
        return isinstance(error, LeaseLost | Cancelled)


def release(lease: JobLease, error: BaseException) -> None:
    """Let go of the job as the error calls for."""
    may_go_on = lease.job.attempts < ATTEMPTS
    match error:
        case KeyboardInterrupt():
            end(lease.own_row, Status.CANCELLED, error="Interrupted.")
        case SystemExit():
            end(lease.own_row, Status.QUEUED)
        case KnowledgeError():
            end(lease.own_row, Status.QUEUED if may_go_on else Status.FAILED, error=str(error))
        case OperationalError() | InterfaceError():
            pass  # PostgreSQL is away, so nothing can be said: the lease runs out by itself.
        case _:
            blame(lease, error)


def blame(lease: JobLease, error: BaseException) -> None:
    """Set the item aside over which the worker failed, so that the rest can go on.

    When it was at several, the next attempt takes them one by one.
    """
    sentence = storable(f"Docent failed over it: {type(error).__name__}: {error}")[:1000]
    with transaction.atomic():
        if lease.item is not None:
            Item.objects.filter(pk=lease.item.pk, status=Item.Status.WAITING).update(
                status=Item.Status.SKIPPED, reason=sentence, updated=now()
            )
        may_go_on = lease.item is not None or lease.job.attempts < ATTEMPTS
        status = Status.QUEUED if may_go_on else Status.FAILED
        end(lease.own_row, status, error=sentence)


def claim(ingest_id: uuid.UUID | str) -> JobLease | None:
    """Take the job if it is free; None when it is not, or has ended, or is gone."""
    release_dead()
    token = uuid.uuid4()
    available = waiting().filter(pk=ingest_id).order_by()
    # Whoever was at it when it was called off died before it could stop.
    if end(available.filter(cancelling=True), Status.CANCELLED):
        return None
    if not available.update(
        status=Status.RUNNING,
        attempts=F("attempts") + 1,
        token=token,
        worker=liveness.own_identity(),
        lease_until=now() + LEASE,
        error="",
        updated=now(),
    ):
        return None
    job = Ingest.objects.select_related("collection").get(pk=ingest_id)
    if job.started is None:
        job.started = now()
        Ingest.objects.filter(pk=job.pk).update(started=job.started)
    lease = JobLease(job, token, is_cautious=job.attempts > 1)
    return lease if job.attempts <= ATTEMPTS or set_aside(lease) else None


def set_aside(lease: JobLease) -> bool:
    """Skip the item over which one worker after the other died; end the job when there is none."""
    reason = f"{ATTEMPTS} workers died over it"
    item = lease.job.items.filter(status=Item.Status.WAITING).order_by("number").first()
    if item is None:
        end(lease.own_row, Status.FAILED, error=f"Given up: {reason}.")
        return False
    with transaction.atomic():
        lease.progress()
        Item.objects.filter(pk=item.pk).update(
            status=Item.Status.SKIPPED, reason=reason, updated=now()
        )
    return True
