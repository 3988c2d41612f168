"""Printing: what came of ingests, for a terminal."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rich.table import Table

from knowledge.ingestion import Problem, Report, progress
from knowledge.models import Ingest, Receipt

# Names shown per reason; the rest is counted.
NAMES_SHOWN = 5


def summary(report: Report) -> Table:
    """Return what became of the documents as a table."""
    table = Table(title=f"Collection {report.collection}", title_justify="left")
    table.add_column("Documents")
    table.add_column("", justify="right")
    for name in ("new", "changed", "unchanged", "duplicate", "removed"):
        table.add_row(name, str(getattr(report, name)))
    table.add_row("skipped", str(len(report.skipped)))
    table.add_section()
    table.add_row("chunks written", str(report.chunks))
    table.add_row("seconds", f"{report.seconds:.1f}")
    return table


def remarks(report: Report) -> list[str]:
    """Return a line per reason for which files were skipped, doubted or passed over."""
    lines = [f"Skipped, {line}" for line in by_reason(report.skipped)]
    lines += [f"Warning, {line}" for line in by_reason(report.warnings)]
    ignored = [f"{count} {reason}" for reason, count in sorted(report.ignored.items())]
    lines += [f"Passed over: {', '.join(ignored)}"] if ignored else []
    return lines + ([f"Receipt of what was removed: {report.receipt}"] if report.receipt else [])


def by_reason(problems: Sequence[Problem]) -> list[str]:
    """Return "reason: file, file and 3 more" for each reason."""
    sources: dict[str, list[str]] = defaultdict(list)
    for problem in problems:
        sources[problem.reason].append(problem.source)
    return [
        f"{reason}: {', '.join(names[:NAMES_SHOWN])}"
        + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")
        for reason, names in sources.items()
    ]


def standing(job: Ingest) -> Table:
    """Return how one job stands as a table."""
    seen = progress(job)
    table = Table(title=f"{job.name} into {job.collection.name}", title_justify="left")
    table.add_column("Ingest")
    table.add_column(str(job.pk), overflow="fold")
    table.add_row("status", seen.status)
    table.add_row("items", f"{seen.finished} of {seen.items}")
    for name, count in sorted(seen.outcomes.items()):
        table.add_row(f"  {name}", str(count))
    table.add_row("documents", str(seen.documents))
    table.add_row("chunks written", str(seen.chunks))
    if not job.ended:
        table.add_row("at hand", seen.current)
        table.add_row("items a second", f"{seen.rate:.1f}")
        left = seen.seconds_left
        table.add_row("seconds left", "unknown" if left is None else f"{left:.0f}")
    if job.error:
        table.add_row("error", job.error)
    return table


def overview(jobs: Iterable[Ingest]) -> Table:
    """Return jobs as a table, one a line."""
    table = Table()
    for name in ("Ingest", "Collection", "Status", "Items", "Begun", "What"):
        table.add_column(name)
    for job in jobs:
        seen = progress(job)
        begun = f"{job.created:%Y-%m-%d %H:%M}"
        items = f"{seen.finished}/{seen.items}"
        table.add_row(str(job.pk)[:8], job.collection.name, job.status, items, begun, job.name)
    return table


def receipt_table(receipt: Receipt) -> Table:
    """Return a receipt as a table."""
    table = Table(title=f"Removed from {receipt.collection}", title_justify="left")
    table.add_column("Receipt")
    table.add_column(str(receipt.pk), justify="right", overflow="fold")
    for name, count in receipt.removed.items():
        table.add_row(name, str(count))
    table.add_section()
    table.add_row("answers that relied on them", str(len(receipt.answers)))
    return table
