"""Uploads: ingests what came in through the API, exactly once however often it is asked to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils.timezone import now

from knowledge.errors import KnowledgeError
from knowledge.ingestion.pipeline import Pipeline
from knowledge.ingestion.report import Report
from knowledge.models import Ingest

LEASE = timedelta(seconds=60)
ATTEMPTS = 3


@dataclass(frozen=True)
class Upload:
    """The file inside an Ingest."""

    origin: str
    body: bytes
    folders: Sequence[str] = ()

    def read(self) -> bytes:
        """Return its content."""
        return self.body


def waiting() -> QuerySet[Ingest]:
    """Return the uploads somebody should `run`: queued, or left behind by a worker that died."""
    return Ingest.objects.filter(
        Q(status=Ingest.Status.QUEUED) | Q(status=Ingest.Status.RUNNING, lease_until__lt=now())
    ).order_by("created")


def run(ingest_id: UUID | str) -> Report | None:
    """Ingest one upload and record the outcome on it.

    Returns None when there is nothing to do: another worker has it, it is done, or it is gone.
    The file itself being unreadable is an outcome (failed, with the reason) and no exception.
    Raises KnowledgeError when it may work another time; the upload is then open again, and
    failed after three attempts.
    """
    if not claimed(ingest_id):
        return None
    upload = Ingest.objects.select_related("collection").get(pk=ingest_id)
    mine = Ingest.objects.filter(pk=upload.pk, attempts=upload.attempts)

    def renew(finished: int, origin: str) -> None:
        mine.update(lease_until=now() + LEASE)

    pipeline = Pipeline(upload.collection, watch=renew)
    try:
        pipeline.take(Upload(upload.name, bytes(upload.body)))
        pipeline.flush()
    except KnowledgeError as error:
        left = upload.attempts < ATTEMPTS
        finish(mine, Ingest.Status.QUEUED if left else Ingest.Status.FAILED, error=str(error))
        raise
    record(mine, pipeline.report)
    return pipeline.report


def claimed(ingest_id: UUID | str) -> bool:
    """Tell whether this process may ingest the upload now; give it up after three attempts."""
    free = waiting().filter(pk=ingest_id)
    lost = free.filter(attempts__gte=ATTEMPTS)
    finish(lost, Ingest.Status.FAILED, error=f"Given up: {ATTEMPTS} workers died over it.")
    return bool(
        free.order_by().update(
            status=Ingest.Status.RUNNING,
            attempts=F("attempts") + 1,
            lease_until=now() + LEASE,
            updated=now(),
        )
    )


def record(mine: QuerySet[Ingest], report: Report) -> None:
    """Write the outcome down; what was stored needs the upload no longer."""
    if report.is_useful:
        finish(mine, Ingest.Status.DONE, report=report.as_json(), body=b"")
    else:
        reason = "; ".join(problem.reason for problem in report.skipped)
        finish(mine, Ingest.Status.FAILED, report=report.as_json(), error=reason)


def finish(uploads: QuerySet[Ingest], status: Ingest.Status, **values: object) -> None:
    """Set the outcome."""
    uploads.order_by().update(status=status, lease_until=None, updated=now(), **values)
