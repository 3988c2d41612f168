"""Ingest: brings a collection to what files, folders and web pages say."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console

from knowledge import ingestion
from knowledge.collections import DEFAULT_COLLECTION
from knowledge.errors import KnowledgeError
from knowledge.ingestion.jobs import enqueue
from knowledge.ingestion.plan import split_paths_and_urls
from knowledge.ingestion.report import report
from knowledge.ingestion.state import TEXTS_AT_ONCE
from knowledge.management.console import (
    console_of,
    job_table,
    jobs_table,
    notes,
    run_with_bar,
    summary,
)
from knowledge.model_calls import Estimate, description_estimate
from knowledge.models import Document, Ingest, Item


class Command(BaseCommand):
    """`manage.py ingest PATH_OR_URL…`."""

    help = (
        "Take files, folders, zips, web pages and sitemaps into a collection. What did not change "
        "is left alone. Killed, it is gone on with by a worker or by the same command."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("paths", nargs="*", metavar="PATH_OR_URL")
        parser.add_argument(
            "--collection",
            default=DEFAULT_COLLECTION,
            metavar="NAME",
            help="made when it does not exist (default: %(default)s)",
        )
        parser.add_argument(
            "--keep-missing",
            action="store_true",
            help="keep documents whose file is gone from an ingested folder",
        )
        parser.add_argument(
            "--force", action="store_true", help="take unchanged documents in anew, too"
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace what was uploaded as a file of the same name",
        )
        parser.add_argument(
            "--describe",
            action="store_true",
            help="have the model of GEN_MODEL describe them; with ENRICHMENT_MODEL it does anyway",
        )
        parser.add_argument(
            "--background", action="store_true", help="leave the work to the ingest worker"
        )
        jobs = parser.add_mutually_exclusive_group()
        jobs.add_argument(
            "--status", nargs="?", const="", metavar="ID", help="show the latest jobs, or one"
        )
        jobs.add_argument("--cancel", metavar="ID", help="stop a job; what was stored stays")
        jobs.add_argument("--retry", metavar="ID", help="do again what failed or was not reached")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is asked, with a progress bar where that takes time."""
        console = console_of(self, options)
        try:
            if options["status"] is not None:
                show(console, options["status"])
            elif options["cancel"]:
                cancel(console, options["cancel"])
            else:
                self.work(console, job_to_retry(options["retry"]) or plan_job(options), options)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error

    def work(self, console: Console, job: Ingest, options: dict[str, Any]) -> None:
        """Do the job, or leave it to a worker; say what became of every file."""
        if options["background"]:
            enqueue(job)
            message = f"Queued as {job.pk}. How far it is: ingest --status {job.pk}"
            console.print(message, soft_wrap=True)
            return
        try:
            run_with_bar(job, console)
        except KeyboardInterrupt as error:
            raise CommandError(
                "Stopped. What was stored stays; the same command goes on from here, and so does "
                f"ingest --retry {job.pk}",
                returncode=130,
            ) from error
        job.refresh_from_db()
        result = report(job)
        console.print(summary(result))
        console.print(*notes(result), sep="\n", soft_wrap=True)
        if price := price_of_descriptions(job):
            console.print(
                f"Described in their own words. With --describe: {price}.", soft_wrap=True
            )
        if job.status == Ingest.Status.CANCELLED:
            raise CommandError(f"It was cancelled. To go on: ingest --retry {job.pk}")
        if job.status == Ingest.Status.FAILED:
            raise CommandError(f"Nothing could be ingested. {job.error}")


def plan_job(options: dict[str, Any]) -> Ingest:
    """Return the job of what was named. Raises what `plan` raises."""
    paths, urls = split_paths_and_urls(options["paths"])
    return ingestion.plan(
        options["collection"],
        paths=paths,
        urls=urls,
        force=options["force"],
        keep_missing=options["keep_missing"],
        describe=options["describe"],
        replace=options["replace"],
    )


def price_of_descriptions(job: Ingest) -> Estimate | None:
    """Return what a model would take to describe what a job took in; None when it has, or can't."""
    if job.options.get("describe"):
        return None
    taken = job.items.filter(status__in=(Item.Status.NEW, Item.Status.CHANGED))
    documents = Document.objects.filter(
        collection=job.collection, origin__in=taken.values("origin")
    )
    texts = documents.values_list("title", "content").iterator(chunk_size=TEXTS_AT_ONCE)
    price = description_estimate(texts)
    return price if price and price.documents else None


def job_to_retry(name: str | None) -> Ingest | None:
    """Return the job to be tried again, queued; None when none is named. Raises JobError."""
    if not name:
        return None
    job = job_named(name)
    if not ingestion.retry(job.pk):
        raise CommandError("Nothing of this job failed, or its uploads are gone.")
    return job


def cancel(console: Console, name: str) -> None:
    """Cancel a job."""
    if not ingestion.cancel(job_named(name).pk):
        raise CommandError("This job has ended already.")
    console.print(f"Cancelled. To go on with it: ingest --retry {name}", soft_wrap=True)


def show(console: Console, name: str) -> None:
    """Print how one job stands, or the latest ones."""
    if name:
        job = job_named(name)
        console.print(job_table(job))
        console.print(*notes(report(job)), sep="\n")
    else:
        console.print(jobs_table(Ingest.objects.select_related("collection")[:20]))


def job_named(name: str) -> Ingest:
    """Return the job whose id is, or begins with, `name`."""
    job = Ingest.objects.filter(pk__in=ids_like(name)).select_related("collection").first()
    if job is None:
        raise CommandError(f"There is no job {name!r}. `ingest --status` lists the latest.")
    return job


def ids_like(name: str) -> list[uuid.UUID]:
    """Return the ids of the jobs that begin with `name`, one at most."""
    ids = [pk for pk in Ingest.objects.values_list("pk", flat=True) if str(pk).startswith(name)]
    return ids if len(ids) == 1 else []
