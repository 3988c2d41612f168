"""Report: what became of a job's items, when it has ended and while it runs."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from django.db.models import Count, Q, Sum
from django.utils.timezone import now

from knowledge.models import Ingest, Item

Outcome = Literal["new", "changed", "unchanged", "duplicate"]

# Files are finished in bursts; a shorter time would say nothing about the next minute.
WINDOW = timedelta(seconds=60)
LISTED = 200  # problems kept with a job; all are on its items


@dataclass(frozen=True)
class Problem:
    """Something about a file that whoever ingests it should know."""

    source: str
    reason: str


@dataclass
class Report:
    """The outcome of one job: documents by what became of them, and files that made trouble."""

    collection: str
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    duplicate: int = 0
    removed: int = 0
    skipped: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)  # why → how many files
    chunks: int = 0  # written
    seconds: float = 0.0
    receipt: str = ""  # id of what was removed

    @property
    def is_useful(self) -> bool:
        """Whether the collection is now as the files say, at least in part."""
        return bool(self.new or self.changed or self.unchanged or self.duplicate or self.removed)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, with the first of its problems."""
        fields = asdict(self)
        for name in ("skipped", "warnings"):
            fields[name] = fields[name][:LISTED]
        return fields


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    status: str
    current: str  # the file at hand
    items: int
    finished: int
    outcomes: dict[str, int]  # status of an item → how many; "waiting" ones are left
    documents: int  # finished, of all items
    chunks: int  # written
    rate: float  # items a second over the last minute
    seconds_left: float | None  # None: unknown


def report(job: Ingest) -> Report:
    """Return what came of the job so far."""
    result = Report(job.collection.name)
    counts: Counter[str] = Counter()
    ignored: Counter[str] = Counter(job.options.get("ignored", {}))
    rows = job.items.order_by("number").values_list(
        "status", "origin", "reason", "counts", "chunks", "warnings"
    )
    for status, origin, reason, item_counts, chunks, warnings in rows.iterator():
        counts.update(item_counts)
        result.chunks += chunks
        if status == Item.Status.SKIPPED:
            result.skipped.append(Problem(origin, reason))
        result.warnings += [Problem(**warning) for warning in warnings]
    result.new, result.changed = counts["new"], counts["changed"]
    result.unchanged, result.duplicate = counts["unchanged"], counts["duplicate"]
    result.skipped += [Problem(**problem) for problem in job.options.get("unread", [])]
    result.ignored = {reason: count for reason, count in ignored.items() if count}
    if job.started is not None:
        result.seconds = round(((job.ended or now()) - job.started).total_seconds(), 2)
    return result


def progress(job: Ingest) -> Progress:
    """Return how far the job is, in two short queries; `job` is read as it was loaded."""
    rows = job.items.order_by().values_list("status").annotate(Count("id"))
    outcomes = {str(status): count for status, count in rows}
    left = outcomes.get(Item.Status.WAITING, 0)
    total = sum(outcomes.values())
    begun = max(job.started or now(), now() - WINDOW)
    totals = job.items.aggregate(
        documents=Sum("documents"),
        chunks=Sum("chunks"),
        lately=Count("id", filter=~Q(status=Item.Status.WAITING) & Q(updated__gt=begun)),
    )
    if job.kind != Ingest.Kind.INGEST:
        # Without items: it says itself how far it is.
        total = job.report.get("total", 0)
        left = total - job.report.get("done", 0)
    seconds = (now() - begun).total_seconds()
    rate = totals["lately"] / seconds if seconds and not job.ended else 0.0
    return Progress(
        status=job.status,
        current=job.current,
        items=total,
        finished=total - left,
        outcomes=outcomes,
        documents=totals["documents"] or 0,
        chunks=totals["chunks"] or 0,
        rate=round(rate, 2),
        seconds_left=round(left / rate, 1) if rate else None,
    )
