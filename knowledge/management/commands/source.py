"""Source: Git repositories and sitemaps that a collection follows, and what their runs changed."""

import re
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.timezone import localtime
from rich.console import Console
from rich.table import Table

from knowledge.collections import DEFAULT_COLLECTION
from knowledge.errors import KnowledgeError
from knowledge.ingestion import schedule
from knowledge.ingestion.report import report
from knowledge.management.console import console_of, notes, run_with_bar, summary
from knowledge.models import Ingest, Source

SPAN = re.compile(r"(\d{1,4})\s*(m|h|d)")
UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
RUNS_SHOWN = 20


class Command(BaseCommand):
    """`manage.py source add|list|show|run|pause|resume|remove`."""

    help = "Follow Git repositories and sitemaps: they are read again on a schedule."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare what can be done."""
        actions = parser.add_subparsers(dest="action", required=True)
        adding = actions.add_parser("add", help="follow a repository or a sitemap")
        adding.add_argument("address", help="of a sitemap (.xml, .xml.gz), else of a repository")
        adding.add_argument("--collection", default=DEFAULT_COLLECTION, metavar="NAME")
        adding.add_argument("--every", default="1d", help="such as 30m, 6h or 1d (the default)")
        adding.add_argument("--branch", default="", help="the one it calls its own without")
        adding.add_argument("--folder", default="", help="only what lies in it")
        adding.add_argument(
            "--only", action="append", default=[], metavar="PATTERN", help="such as '*.md'; several"
        )
        actions.add_parser("list", help="what is followed, and what the latest run changed")
        about = {
            "show": "the latest runs of one",
            "run": "read it now, also what seems unchanged",
            "pause": "read it only when asked to",
            "resume": "read it on its schedule again",
            "remove": "follow it no more; its documents stay",
        }
        for action, text in about.items():
            one = actions.add_parser(action, help=text)
            one.add_argument("id", help="or the beginning of it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is asked."""
        console = console_of(self, options)
        action = options["action"]
        try:
            if action == "list":
                console.print(sources_table(list(Source.objects.select_related("collection"))))
            elif action == "add":
                source = follow(options)
                console.print(f"Followed as {source.pk}.", soft_wrap=True)
                run(source, console)
            else:
                ACTIONS[action](source_named(options["id"]), console)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error


def follow(options: dict[str, Any]) -> Source:
    """Add the source that was named. Raises InvalidSource and CommandError."""
    address = options["address"]
    if "://" not in address and Path(address).is_dir():
        address = str(Path(address).resolve())
    return schedule.add(
        options["collection"],
        address,
        branch=options["branch"],
        folder=options["folder"],
        patterns=options["only"],
        every=span(options["every"]),
        is_local=True,
    )


def span(text: str) -> timedelta:
    """Return a span such as "6h". Raises CommandError."""
    match = SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise CommandError(f"{text!r} is no span of time: use 30m, 6h or 1d.")
    return int(match[1]) * UNITS[match[2]]


def source_named(name: str) -> Source:
    """Return the source whose id is, or begins with, `name`."""
    ids = [pk for pk in Source.objects.values_list("pk", flat=True) if str(pk).startswith(name)]
    if len(ids) != 1:
        raise CommandError(f"There is no source {name!r}. `source list` lists all.")
    return Source.objects.select_related("collection").get(pk=ids[0])


def run(source: Source, console: Console) -> None:
    """Read a source right here, and say what changed."""
    job = schedule.plan_run(source, is_whole=True)
    if job is None:
        raise CommandError("It is being read already: `ingest --status` shows how far it is.")
    run_with_bar(job, console)
    job.refresh_from_db()
    result = report(job)
    result.removed = job.report.get("removed", 0)
    console.print(summary(result))
    console.print(*notes(result), sep="\n", soft_wrap=True)
    if job.status == Ingest.Status.FAILED:
        raise CommandError(f"It could not be read, and stays as it was. {job.error}")


def show(source: Source, console: Console) -> None:
    """Print the latest runs of a source."""
    console.print(f"{source} → {source.collection.name}, {schedule_of(source)}", soft_wrap=True)
    table = Table("Started", "Status", "New", "Changed", "Unchanged", "Removed", "Skipped", "Error")
    for job in source.runs.order_by("-created")[:RUNS_SHOWN]:
        table.add_row(f"{localtime(job.created):%Y-%m-%d %H:%M}", job.status, *counts(job))
    console.print(table)


def counts(job: Ingest) -> list[str]:
    """Return what a run changed, and why it failed."""
    said = job.report
    names = ("new", "changed", "unchanged", "removed")
    numbers = [str(said.get(name, "")) for name in names]
    return [*numbers, str(len(said.get("skipped", []))) if said else "", job.error[:200]]


def schedule_of(source: Source) -> str:
    """Return when a source is read."""
    due = f"next {localtime(source.due):%Y-%m-%d %H:%M}"
    return "paused" if source.paused else f"every {source.every}, {due}"


def sources_table(sources: list[Source]) -> Table:
    """Return what is followed."""
    table = Table("Id", "Collection", "Address", "Read", "Latest run", "New, changed, removed")
    for source in sources:
        latest = source.runs.order_by("-created").first()
        new, changed, _, removed, *_ = counts(latest) if latest else [""] * 6
        table.add_row(
            str(source.pk)[:8],
            source.collection.name,
            str(source),
            schedule_of(source),
            f"{localtime(latest.created):%Y-%m-%d %H:%M} {latest.status}" if latest else "",
            ", ".join([new, changed, removed]) if latest and latest.report else "",
        )
    return table


def pause(source: Source, console: Console) -> None:
    """Read it only when somebody asks for it."""
    Source.objects.filter(pk=source.pk).update(paused=True)
    console.print("Paused. `source run` reads it, `source resume` goes on with its schedule.")


def resume(source: Source, console: Console) -> None:
    """Go on with its schedule."""
    Source.objects.filter(pk=source.pk).update(paused=False)
    console.print("Read on its schedule again.")


def remove(source: Source, console: Console) -> None:
    """Follow it no more."""
    source.delete()
    console.print(
        "Followed no more. Its documents stay; `delete --collection "
        f"{source.collection.name}` removes them.",
        soft_wrap=True,
    )


ACTIONS = {"show": show, "run": run, "pause": pause, "resume": resume, "remove": remove}
