"""Upkeep: what is done to a collection as a whole, as jobs of the library.

They wait in the queue of ingests, are held under the same lease and shown on the same pages. What
each may do twice without harm: measure, fill in what is missing, move what is not there yet.
"""

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils.timezone import now

from knowledge import calibration, golden, reindex
from knowledge.archive import export
from knowledge.embedding import registry
from knowledge.errors import EmbeddingUnavailable, KnowledgeError
from knowledge.ingestion import moves
from knowledge.ingestion.job_lease import JobLease, acquire
from knowledge.ingestion.jobs import OPEN, Status, end
from knowledge.models import Collection, Document, Ingest, Piece
from knowledge.search.sql import rows

Kind = Ingest.Kind
PIECE = 1024 * 1024  # bytes
LOOK_SECONDS = 0.5
# After its last job a collection is left in peace for so long: whoever took something in asks
# something, or takes in more.
REST = timedelta(minutes=1)
NAMES = {
    Kind.CALIBRATE: "calibration of {}",
    Kind.REINDEX: "vectors of {}",
    Kind.EXPORT: "archive of {}",
    Kind.EVALUATE: "golden questions of {}",
}
# Collections with too many chunks for their threshold, about which nobody is busy. What could not
# be calibrated is not tried again before something else was done.
UNCALIBRATED = """
SELECT collection.id
FROM knowledge_collection AS collection
    JOIN knowledge_census AS census ON census.collection_id = collection.id
    LEFT JOIN knowledge_calibration AS calibration ON calibration.collection_id = collection.id
        AND calibration.model = embedding_model
    JOIN knowledge_ingest AS job ON job.collection_id = collection.id
WHERE chunks >= %(fewest)s
    AND chunks >= %(growth)s * coalesce((calibration.report ->> 'chunks')::int, 0)
GROUP BY collection.id
HAVING bool_and(coalesce(job.ended < %(rested)s, FALSE))
    AND coalesce(max(job.ended) FILTER (WHERE job.kind = 'calibrate') < max(job.ended), TRUE)
"""


def plan(collection: Collection, kind: Ingest.Kind, **options: str) -> Ingest:
    """Make the job, or return the one of its kind that is under way; nobody is told of it yet.

    To make vectors, `model` names whose. Raises UnknownModel.
    """
    if kind is Kind.REINDEX:
        options["model"] = registry.full_name(options.get("model") or collection.embedding_model)
    try:
        with transaction.atomic():
            return Ingest.objects.create(
                collection=collection,
                kind=kind,
                name=NAMES[kind].format(collection.name),
                options=options,
            )
    except IntegrityError:
        # Whoever pressed the button a moment before made it.
        return Ingest.objects.get(collection=collection, kind=kind, status__in=OPEN)


def plan_calibrations() -> list[Ingest]:
    """Make a job for each collection whose threshold is out of date, once it came to rest.

    None while the settings say where the threshold lies. Nobody is told of the jobs.
    """
    if not settings.CALIBRATES_BY_ITSELF:
        return []
    values = {
        "fewest": calibration.FEWEST_CHUNKS,
        "growth": calibration.GROWTH,
        "rested": now() - REST,
    }
    due = [row[0] for row in rows(UNCALIBRATED, values)]
    return [plan(each, Kind.CALIBRATE) for each in Collection.objects.filter(pk__in=due)]


def plan_move(documents: Iterable[Document], target: Collection) -> list[Ingest]:
    """Make a job for each collection that documents are to leave for another one."""
    leaving: dict[int, list[str]] = {}
    for document in documents:
        if document.collection_id != target.pk:
            leaving.setdefault(document.collection_id, []).append(document.pk)
    return [
        Ingest.objects.create(
            collection_id=origin,
            kind=Kind.MOVE,
            name=f"{len(ids)} document{'' if len(ids) == 1 else 's'} to {target.name}",
            options={"documents": ids, "to": target.pk},
        )
        for origin, ids in leaving.items()
    ]


def is_upkeep(ingest_id: uuid.UUID) -> bool:
    """Whether the job takes nothing in."""
    return Ingest.objects.filter(pk=ingest_id).exclude(kind=Kind.INGEST).exists()


def run(ingest_id: uuid.UUID) -> None:
    """Do the job unless somebody does or did.

    Raises EmbeddingUnavailable when it may work another time; it is then queued again.
    """
    with acquire(ingest_id) as lease:
        if lease is None:
            return
        try:
            report = WORK[Kind(lease.job.kind)](lease)
        except EmbeddingUnavailable:
            raise
        except KnowledgeError as error:
            # It would come to the same another time.
            end(lease.own_row, Status.FAILED, error=str(error), report={})
            return
        with transaction.atomic():
            lease.fence()
            end(lease.own_row, Status.DONE, report=report)


def watched(lease: JobLease, what: str) -> Callable[[int, int], None]:
    """Return what says how far a job is, and notices when it is called off."""

    def watch(done: int, total: int) -> None:
        lease.say({"done": done, "total": total}, f"{what}: {done:,} of {total:,}")

    return watch


def calibrate(lease: JobLease) -> dict[str, Any]:
    """Find the threshold of the collection, and that across languages where there is one."""
    collection = lease.job.collection
    outcome = calibration.calibrate(collection, watched(lease, "questions"))
    across = calibration.calibrate_across(collection)
    with transaction.atomic():
        lease.fence()
        outcome.keep()
        if across is not None:
            across.keep()
    return outcome.as_json() | ({"across": across.as_json()} if across else {})


def make_vectors(lease: JobLease) -> dict[str, Any]:
    """Have the collection searched by the vectors of a model, unless they find less."""
    watch, name = watched(lease, "chunks"), lease.job.options["model"]
    outcome = reindex.reindex(lease.job.collection, name, watch=watch)
    verdict = outcome.comparison.verdict if outcome.comparison else ""
    return asdict(outcome) | {"verdict": verdict}


def ask_golden(lease: JobLease) -> dict[str, Any]:
    """Ask the collection its golden questions."""
    return golden.judged(lease.job.collection, watched(lease, "questions"))


def archive(lease: JobLease) -> dict[str, Any]:
    """Write the collection into a file, and keep that in pieces until the next one.

    The export reads in a transaction of its own that may not write: another thread has it.
    """
    far = (0, 0)
    is_over = False

    def watch(done: int, total: int) -> None:
        nonlocal far
        far = (done, total)
        if is_over:
            raise InterruptedError

    def work(path: Path) -> dict[str, int]:
        try:
            return dict(export(lease.job.collection, path, watch=watch).counts)
        finally:
            connection.close()

    tell = watched(lease, "documents")
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        path = Path(folder) / "archive"
        future = pool.submit(work, path)
        try:
            while not wait([future], timeout=LOOK_SECONDS).done:
                tell(*far)
        finally:
            is_over = True
        counts = future.result()
        size = keep(lease, path)
    return {"counts": counts, "bytes": size}


def keep(lease: JobLease, path: Path) -> int:
    """Store a file in pieces, in place of those of earlier exports; return its size."""
    size = 0
    Piece.objects.filter(ingest=lease.job).delete()
    with path.open("rb") as file:
        for number, body in enumerate(iter(lambda: file.read(PIECE), b""), start=1):
            with transaction.atomic():
                lease.fence()
                Piece.objects.create(ingest=lease.job, number=number, body=body)
            size += len(body)
    earlier = Piece.objects.filter(ingest__collection=lease.job.collection)
    earlier.exclude(ingest=lease.job).delete()
    return size


def move_documents(lease: JobLease) -> dict[str, Any]:
    """Move documents one by one, each whole; say which could not be moved, and why."""
    options, watch = lease.job.options, watched(lease, "documents")
    target = Collection.objects.filter(pk=options["to"]).first()
    if target is None:
        raise moves.Immovable("the collection they were to go to was deleted")
    moved, refused = 0, []
    for place, identity in enumerate(options["documents"], start=1):
        try:
            with transaction.atomic():
                lease.fence()
                moves.move(identity, target)
            moved += 1
        except moves.Immovable as error:
            rows = Document.objects.filter(pk=identity)
            source = rows.values_list("source", flat=True).first() or identity
            refused.append({"source": source, "reason": str(error)})
        watch(place, len(options["documents"]))
    moves.finish(lease.job.collection_id, target.pk)
    if not moved:
        raise moves.Immovable("; ".join(f"{each['source']}: {each['reason']}" for each in refused))
    return {"moved": moved, "to": target.name, "refused": refused}


WORK: dict[Ingest.Kind, Callable[[JobLease], dict[str, Any]]] = {
    Kind.CALIBRATE: calibrate,
    Kind.REINDEX: make_vectors,
    Kind.EXPORT: archive,
    Kind.EVALUATE: ask_golden,
    Kind.MOVE: move_documents,
}
