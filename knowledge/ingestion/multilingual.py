"""Multilingual: gives collections the vectors of the second model of this machine, as jobs.

They stand beside those that are searched by otherwise, and are asked for questions in another
language than the documents. Every ingest fills in what its collection lacks; what was there before
CROSS_LINGUAL was set is filled in by a job without items.
"""

from django.conf import settings

from knowledge.embedding import registry
from knowledge.identifiers import LOCAL_MODEL, MULTILINGUAL_MODEL
from knowledge.ingestion.backfill import fill, is_whole
from knowledge.ingestion.job_lease import JobLease
from knowledge.ingestion.jobs import OPEN
from knowledge.models import Collection, Ingest
from knowledge.search import vector_indexes

NAME = f"vectors of {MULTILINGUAL_MODEL}"
KEY = "vectors"  # of a job's options: the model whose vectors it fills in


def is_wanted(collection: Collection) -> bool:
    """Whether the collection is to have them: models behind endpoints know many languages."""
    return settings.CROSS_LINGUAL and collection.embedding_model == LOCAL_MODEL


def plan_missing() -> list[Ingest]:
    """Make a job for each collection that lacks some, unless one is at it already."""
    wanted = [each for each in Collection.objects.all() if is_wanted(each)]
    return [
        Ingest.objects.create(
            collection=collection,
            name=NAME,
            options={KEY: MULTILINGUAL_MODEL, "keep_missing": True},
        )
        for collection in wanted
        if not collection.ingests.filter(kind=Ingest.Kind.INGEST, status__in=OPEN).exists()
        and not is_whole(collection, MULTILINGUAL_MODEL)
    ]


def fill_missing(lease: JobLease) -> int:
    """Fill in what the job's collection lacks; return how many chunks that was.

    What is filled stays, so that the next attempt goes on from there. Raises EmbeddingUnavailable,
    LeaseLost and Cancelled.
    """
    collection = lease.job.collection
    if not is_wanted(collection):
        return 0

    def watch(done: int, total: int) -> None:
        lease.progress()
        lease.beat(f"{NAME}: {done:,} of {total:,}")

    model = registry.named(MULTILINGUAL_MODEL)
    filled = fill(collection, model, watch)
    if filled:
        vector_indexes.ensure(model.name, model.dimensions)
    return filled


def is_background(job: Ingest) -> bool:
    """Whether the job fills in vectors and nothing else."""
    return KEY in job.options
