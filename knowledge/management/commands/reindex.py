"""Reindex: changes the embedding model of a collection while it is searched."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from knowledge import reindex
from knowledge.collections import collections_named
from knowledge.embedding import registry
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of
from knowledge.models import Collection
from knowledge.reindex import Outcome, Plan

COLUMNS = (
    TextColumn("{task.percentage:>3.0f} %"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeRemainingColumn(),
)


class Command(BaseCommand):
    """`manage.py reindex COLLECTION --embedding-model NAME`."""

    help = (
        "Change the embedding model of a collection while it is searched: say what that takes, "
        "make the new vectors beside the old ones, compare both, and switch if recall holds."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("collection")
        parser.add_argument(
            "--embedding-model",
            metavar="NAME",
            default="",
            help="all-MiniLM-L6-v2 or model@provider (default: the collection's)",
        )
        parser.add_argument("--force", action="store_true", help="switch even if recall is lost")
        parser.add_argument("--json", action="store_true")
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--dry-run", action="store_true", help="only say what it takes")
        ways.add_argument(
            "--back", action="store_true", help="go back to the vectors that were kept"
        )
        ways.add_argument("--drop", metavar="MODEL", help="remove vectors that are not in use")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, with a progress bar."""
        console = console_of(self, options)
        console.quiet = options["json"]
        try:
            (collection,) = collections_named([options["collection"]])
            results = carry_out(collection, console, options)
        except KnowledgeError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt as error:
            collection.refresh_from_db()
            raise CommandError(
                f"Interrupted. {collection.name!r} is searched by the vectors of "
                f"{collection.embedding_model}, and those made so far stay: the same command "
                "goes on from here.",
                returncode=130,
            ) from error
        if options["json"]:
            self.stdout.write(json.dumps(results))


def carry_out(collection: Collection, console: Console, options: dict[str, Any]) -> dict[str, Any]:
    """Do what the options say; return what came of it as JSON values."""
    if options["drop"]:
        removed = reindex.drop(collection, options["drop"])
        console.print(f"{removed:,} vectors of {options['drop']} removed.")
        return {"removed": removed}
    if options["back"]:
        return report(reindex.back(collection, options["embedding_model"]), collection, console)
    embedder = registry.named(options["embedding_model"] or collection.embedding_model)
    plan = reindex.plan(collection, embedder)
    console.print(plan_table(plan, collection, embedder.name))
    if options["dry_run"]:
        return {"plan": plan.as_json()}
    with Progress(*COLUMNS, console=console, transient=True) as progress:
        task = progress.add_task("", total=plan.missing)
        outcome = reindex.reindex(
            collection,
            embedder.name,
            force=options["force"],
            watch=lambda done, total: progress.update(task, completed=done, total=total),
        )
    return {"plan": plan.as_json(), **report(outcome, collection, console)}


def plan_table(plan: Plan, collection: Collection, model: str) -> Table:
    """Return the plan as a table."""
    table = Table(title=f"{collection.name} with {model}", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name in ("documents", "sections", "chunks"):
        table.add_row(name, f"{getattr(plan, name):,}")
    table.add_section()
    table.add_row("chunks to encode", f"{plan.missing:,}")
    table.add_row("dimensions", f"{plan.dimensions:,}")
    table.add_row("tokens, about", f"{plan.tokens:,}")
    table.add_row("seconds, about", f"{plan.seconds:,.0f}")
    table.add_row("cost, about", cost(plan.dollars))
    if plan.cut:
        table.add_row("chunks longer than it sees", f"{plan.cut:,}")
    return table


def cost(dollars: float | None) -> str:
    """Return the cost in words."""
    if dollars is None:
        return "unknown"
    return f"${dollars:,.4f}" if dollars else "nothing"


def report(outcome: Outcome, collection: Collection, console: Console) -> dict[str, Any]:
    """Print the outcome; return it as JSON values."""
    console.print(f"{outcome.filled:,} chunks encoded.")
    if outcome.comparison:
        console.print(outcome.comparison.verdict)
    if outcome.before == outcome.after:
        console.print(f"{collection.name} uses {outcome.after}, as before.")
    else:
        console.print(
            f"{collection.name} now uses {outcome.after}. The vectors of {outcome.before} are "
            f"kept: `reindex {collection.name} --back` goes back to them, "
            f"`--drop {outcome.before}` removes them."
        )
    return asdict(outcome)
