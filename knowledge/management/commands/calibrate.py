"""Calibrate: sets how sure a search must be in each collection."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.core.management.base import BaseCommand, CommandError
from rich.table import Table
from rich.text import Text

from knowledge.calibration import Outcome, calibrate, calibrate_across
from knowledge.collections import collections_named
from knowledge.errors import KnowledgeError
from knowledge.management.console import console_of, progress_bar
from knowledge.models import Collection

BAR_WIDTH = 24
BIN = 0.05
KINDS = {
    "foreign": "about something else",
    "own": "its own titles",
    "answerable": "golden, answered",
    "unanswerable": "golden, no answer",
}


class Command(BaseCommand):
    """`manage.py calibrate [COLLECTION…]`."""

    help = (
        "Find out how sure a search must be in each collection before it counts as having found "
        "something, from questions that are about it and questions that are not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "collections", nargs="*", metavar="COLLECTION", help="all of them when left out"
        )
        parser.add_argument("--json", action="store_true", help="print the figures as JSON")
        parser.add_argument("--dry-run", action="store_true", help="keep nothing, only show it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Calibrate one after the other; what failed is said at the end."""
        console = console_of(self, options)
        outcomes, failures = [], []
        for collection in collections_to_calibrate(options["collections"]):
            try:
                with progress_bar(f"questions to {collection.name}") as watch:
                    found = [calibrate(collection, watch), calibrate_across(collection)]
            except KnowledgeError as error:
                failures.append(f"{collection.name}: {error}")
                continue
            for outcome in filter(None, found):
                if not options["dry_run"]:
                    outcome.keep()
                outcomes.append(outcome)
                if not options["json"]:
                    console.print(
                        histogram(outcome), verdict(outcome, kept=not options["dry_run"]), sep=""
                    )
        if options["json"]:
            self.stdout.write(json.dumps([outcome.as_json() for outcome in outcomes]))
        if failures:
            raise CommandError("\n".join(failures))


def collections_to_calibrate(names: Sequence[str]) -> list[Collection]:
    """Return the collections of these names, all that hold anything when there are none."""
    try:
        collections = collections_named(names)
    except KnowledgeError as error:
        raise CommandError(str(error)) from error
    if not names:
        collections = list(Collection.objects.filter(documents__isnull=False).distinct())
    if not collections:
        raise CommandError("There is no collection with documents to calibrate.")
    return collections


def histogram(outcome: Outcome) -> Table:
    """Return how confident searches were, a column of bars per kind of question."""
    threshold = outcome.choice.threshold
    table = Table(
        title=f"{outcome.collection.name}, {outcome.chunks:,} chunks, {outcome.model}",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("confidence", justify="right")
    kinds = {name: values for name, values in vars(outcome.scores).items() if len(values)}
    for name, values in kinds.items():
        table.add_column(f"{KINDS[name]} ({len(values)})", min_width=BAR_WIDTH)
    lowest = int(np.floor(min(map(min, kinds.values())) / BIN))
    highest = int(np.floor(max(map(max, kinds.values())) / BIN))
    edges = np.arange(lowest, highest + 2) * BIN
    counts = {name: np.histogram(values, edges)[0] for name, values in kinds.items()}
    for row, edge in enumerate(edges[:-1]):
        passes = edge + BIN > threshold
        bars = [
            Text("█" * round(BAR_WIDTH * count[row] / count.max()), "green" if passes else "red")
            for count in counts.values()
        ]
        mark = "▶" if edge <= threshold < edge + BIN else " "
        table.add_row(f"{mark} {edge:.2f}", *bars)
    return table


def verdict(outcome: Outcome, *, kept: bool) -> str:
    """Return the threshold and what passes it, in two lines."""
    passing = ", ".join(
        f"{share:.0%} {KINDS[name]}" for name, share in outcome.report["passing"].items()
    )
    verb = "Threshold" if kept else "Threshold, not kept:"
    return f"{verb} {outcome.choice.threshold:.3f}: {outcome.choice.reason}.\nPassing: {passing}.\n"
