"""Pipeline: takes files one by one and brings the collection to what they say."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import numpy as np

from knowledge import embedding
from knowledge.errors import InvalidCollectionName, Unreadable
from knowledge.ingestion.drafts import Draft, Sheet, digest, draft, named_like, sheets
from knowledge.ingestion.files import Findings
from knowledge.ingestion.removal import remove_missing
from knowledge.ingestion.report import Problem, Report
from knowledge.ingestion.storing import store
from knowledge.models import COLLECTION_NAME, Collection

# Documents are embedded together until they have this many chunks, about two seconds' work:
# enough to sort by length, little to lose when the process is killed.
CHUNKS_AT_ONCE = 64

Watch = Callable[[int, str], None]  # told how many files are finished, and which one is at hand


class Source(Protocol):
    """Something that can be ingested: a file on disk or an upload."""

    @property
    def origin(self) -> str:
        """The name that stays the same when it is ingested again."""

    @property
    def folders(self) -> Sequence[str]:
        """The folders it lies in, outermost first."""

    def read(self) -> bytes:
        """Return its content. Raises Unreadable."""


def ingest(
    findings: Findings,
    *,
    collection: str,
    keep_missing: bool = False,
    force: bool = False,
    watch: Watch | None = None,
) -> Report:
    """Bring the collection of that name, made when missing, to what the files say.

    Every document is stored as soon as it is ready: an interrupted run is continued by the next.
    Unchanged ones are left alone (unless `force`), without even loading the embedding model.
    Documents whose file is gone are removed (unless `keep_missing`). Files that cannot be read
    are in the report. Raises InvalidCollectionName and EmbeddingUnavailable.
    """
    begin = perf_counter()
    pipeline = Pipeline(collection_named(collection), force=force, watch=watch)
    report = pipeline.report
    for file in findings.files:
        pipeline.take(file)
    pipeline.flush()
    report.skipped += findings.unread
    report.ignored = {reason: count for reason, count in findings.ignored.items() if count}
    if not keep_missing:
        report.removed = remove_missing(
            pipeline.collection,
            folders=findings.folders,
            files=[file.origin for file in findings.files],
            seen=pipeline.seen,
            unread=[problem.source for problem in report.skipped],
        )
    report.seconds = round(perf_counter() - begin, 2)
    return report


def collection_named(name: str) -> Collection:
    """Return the collection of that name, made when missing. Raises InvalidCollectionName."""
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    collection, _ = Collection.objects.get_or_create(
        name=name, defaults={"title": named_like(name)}
    )
    return collection


@dataclass
class Pipeline:
    """One ingestion under way."""

    collection: Collection
    force: bool = False
    watch: Watch | None = None
    seen: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)  # origins
    drafts: list[Draft] = field(default_factory=list)  # waiting for their vectors

    def __post_init__(self) -> None:
        self.report = Report(self.collection.name)
        self.known = dict(self.collection.documents.values_list("source", "sha1"))

    def take(self, source: Source) -> None:
        """Read one file and store what is ready; note why when it cannot be read."""
        self.tell(source.origin)
        try:
            body = source.read()
            if self.known.get(source.origin) == digest(body) and not self.force:
                self.seen.add(source.origin)
                self.report.note("unchanged", source.origin)
            else:
                for sheet in sheets(source.origin, body):
                    self.add(sheet, source.folders)
        except Unreadable as error:
            self.report.skipped.append(Problem(source.origin, str(error)))
        if not any(each.sheet.origin == source.origin for each in self.drafts):
            self.finished.add(source.origin)

    def add(self, sheet: Sheet, folders: Sequence[str]) -> None:
        """Take one page. Raises Unreadable."""
        if sheet.source in self.seen:
            raise Unreadable(f"another document of this run has the same source, {sheet.source!r}")
        self.seen.add(sheet.source)
        if self.known.get(sheet.source) == sheet.sha1 and not self.force:
            self.report.note("unchanged", sheet.source)
            return
        self.report.warnings += [Problem(sheet.source, reason) for reason in sheet.page.warnings]
        self.drafts.append(draft(sheet, folders))
        if sum(len(each.parts) for each in self.drafts) >= CHUNKS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Embed the waiting documents together, then store each in a transaction of its own."""
        vectors = self.encoded([text for each in self.drafts for text in each.embedded()])
        begin = 0
        for each in self.drafts:
            end = begin + len(each.parts)
            outcome = store(self.collection, each, vectors[begin:end], force=self.force)
            begin = end
            self.report.note(outcome, each.sheet.source)
            self.report.chunks += 0 if outcome == "unchanged" else len(each.parts)
            self.finished.add(each.sheet.origin)
            self.tell(each.sheet.origin)
        self.drafts = []

    def encoded(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of all texts, telling between batches that work goes on."""
        vectors = np.empty((len(texts), embedding.DIMENSIONS), dtype=np.float32)
        for begin in range(0, len(texts), CHUNKS_AT_ONCE):
            end = begin + CHUNKS_AT_ONCE
            vectors[begin:end] = embedding.encode(texts[begin:end])
            self.tell(self.drafts[-1].sheet.origin)
        return vectors

    def tell(self, origin: str) -> None:
        """Say how far the ingestion is."""
        if self.watch is not None:
            self.watch(len(self.finished), origin)
