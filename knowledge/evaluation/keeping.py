"""Keeping: takes the passages of a judged collection in once, for this and every later run."""

import fcntl
import json
import logging
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from django.conf import settings

from knowledge.errors import InvalidCollectionName
from knowledge.evaluation.judged import Judged, Row
from knowledge.evaluation.lines import Unjudgeable
from knowledge.ingestion import plan, run
from knowledge.models import COLLECTION_NAME, Collection, Ingest, document_id

log = logging.getLogger(__name__)

# Passages per file: whoever watches sees every file that is finished.
ROWS_AT_ONCE = 50
LONGEST_SLUG = 40
# A passage without a title is not to be called, and found, by the file it is handed over in.
UNTITLED = " "

Work = Callable[[uuid.UUID], object]  # does the job of that id


@dataclass(frozen=True)
class Kept:
    """A judged collection that can be searched."""

    judged: Judged
    collection: str  # its name
    added: int  # passages taken in by this run
    unfindable: int  # passages with too little text to be found by

    def identifiers(self) -> dict[str, str]:
        """Return the identifier of each document → that of its passage."""
        return {document_id(self.collection, row.id): row.id for row in self.judged.rows()}


def named_after(name: str, digest: str) -> str:
    """Return the name of the collection that holds what a file or folder of that name says."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:LONGEST_SLUG] or "judged"
    return f"{slug}-{digest[:8]}"


def apart(name: str) -> None:
    """Make the collection of that name, unless it is there: one that no user's question meets."""
    Collection.objects.get_or_create(name=name, defaults={"title": name, "only_by_name": True})


def keep(judged: Judged, *, name: str = "", work: Work = run) -> Kept:
    """Bring the passages into the collection `name`; without it, into one named after the folder.

    They go the way every document goes; each is a document whose source is the passage's `id`.
    Those that are there are left alone, whatever they say: an interrupted run is continued, and
    the next has nothing to do, for the collection's name changes with the corpus. Two runs at once
    take turns. `work` does the job, or waits for the worker that does. Raises
    InvalidCollectionName, EmbeddingUnavailable, and Unjudgeable when the job was not done.
    """
    name = name or named_after(judged.folder.resolve().name, judged.digest)
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    apart(name)
    with folder_alone(name) as folder:
        before = sources(name)
        if written(judged, folder, before):
            # What is not in these files was taken in before, and is not gone.
            finish(plan(name, paths=[folder], keep_missing=True), work)
        shutil.rmtree(folder)
    after = sources(name)
    unfindable = sum(row.id not in after for row in judged.rows())
    return Kept(judged, name, len(after) - len(before), unfindable)


@contextmanager
def folder_alone(name: str) -> Iterator[Path]:
    """Yield the folder for a collection's files, which no other run touches meanwhile.

    It is the same each time, so that a job that was killed finds its files and is gone on with.
    """
    place = Path(settings.STATE_DIR) / "evaluation"
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warning("another run is taking in %s; this one waits for it", name)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield place / name


def finish(job: Ingest, work: Work) -> None:
    """Have the job done. Raises Unjudgeable when it was not, or nothing is there to be searched."""
    work(job.pk)
    job.refresh_from_db()
    # One that came to its end without anything new has failed, too, and has a report.
    ended = job.status == Ingest.Status.DONE or (job.status == Ingest.Status.FAILED and job.report)
    if not ended or not job.collection.documents.exists():
        reason = job.error or "somebody else is at it, or stopped it"
        raise Unjudgeable(f"{job.name} was not taken in ({job.status}): {reason}")


def sources(name: str) -> set[str]:
    """Return the sources of the documents in the collection of that name."""
    found = Collection.objects.filter(name=name, documents__isnull=False)
    return set(found.values_list("documents__source", flat=True))


def written(judged: Judged, folder: Path, there: set[str]) -> bool:
    """Write the passages that are missing, with those beside them; tell whether there are any."""
    folder.mkdir(parents=True, exist_ok=True)
    some = False
    for number, rows in enumerate(batches(judged.rows())):
        if any(row.id not in there and row.text.strip() for row in rows):
            some = True
            documents = json.dumps([entry(row) for row in rows if row.text.strip()])
            # Put in place whole: a worker that outlived an earlier run may be reading.
            aside = folder / f"{number:06}.part"
            aside.write_text(documents, encoding="utf-8")
            aside.replace(aside.with_suffix(".json"))
    return some


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows, as many at a time as go into one file."""
    while batch := list(islice(rows, ROWS_AT_ONCE)):
        yield batch


def entry(row: Row) -> dict[str, str]:
    """Return the row in the document structure."""
    return {"source": row.id, "title": row.title or UNTITLED, "content": row.text}
