"""Pipeline: takes a job's items one after another and brings the collection to what they say."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from django.db import DataError, IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.timezone import now

from knowledge.embedding import Vectors
from knowledge.errors import Unreadable
from knowledge.ingestion.decisions import Entry, Work, decide, pending_sheets, unchanged_page
from knowledge.ingestion.describer import Describer, DraftFuture
from knowledge.ingestion.drafts import Sheet
from knowledge.ingestion.job_lease import JobLease
from knowledge.ingestion.job_vectors import CHUNKS_AT_ONCE, Encoder
from knowledge.ingestion.loader import Loaded, Loader, list_items
from knowledge.ingestion.page_marks import Mark, marks_of
from knowledge.ingestion.preparer import Preparer, result
from knowledge.ingestion.state import CollectionState, is_answered
from knowledge.ingestion.store import record_copy, record_origin, store
from knowledge.models import Item
from knowledge.postgres_text import storable

if TYPE_CHECKING:
    from concurrent.futures import Future


log = logging.getLogger(__name__)

PAGES_AT_ONCE = 200  # that need no embedding

# Told how many items are finished, how many there are, and which one is at hand.
Watch = Callable[[int, int, str], None]

# What an item may run into without the others' fault; anything else ends the attempt.
FAULTS = (OSError, ValueError, MemoryError, RecursionError, DataError, IntegrityError)


class Pipeline:
    """One attempt at a job."""

    def __init__(self, lease: JobLease, watch: Watch | None = None) -> None:
        self.lease, self.watch, self.job = lease, watch, lease.job
        self.force = bool(self.job.options.get("force"))
        self.state = CollectionState(self.job)
        self.encoder = Encoder(lease, self.report_progress)
        self.preparer = Preparer(self.encoder.window, self.report_progress)
        self.describer = Describer(self.state.open_questions.names, self.report_progress)
        self.known_marks = marks_of(self.job) if self.job.source_id else {}
        self.marks: dict[str, Mark] = {}  # what servers say of pages in this attempt
        self.lastmods: dict[str, str] = {}  # of pages, as the sitemap has it
        self.entries: list[Entry] = []
        self.last = 0  # number of the item taken last
        self.finished = len(self.state.listed) - self.waiting().count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.preparer.close()

    def work(self) -> None:
        """Take every waiting item. Raises EmbeddingUnavailable, LeaseLost and Cancelled."""
        with Loader(self.state.unchanged_files, self.known_marks) as loader, self.describer:
            # An archive among the last items adds others.
            while self.waiting().exists():
                for entry, future in self.describer.ahead(self.decisions(loader)):
                    self.take(entry, future)
                self.flush()

    def waiting(self) -> QuerySet[Item]:
        """Return the items that wait and were not taken in this attempt."""
        waiting = self.job.items.filter(status=Item.Status.WAITING, number__gt=self.last)
        return waiting.order_by("number").defer("body")

    def items(self) -> Iterator[Item]:
        """Yield them."""
        while batch := list(self.waiting()[:PAGES_AT_ONCE]):
            self.state.reopen(item.origin for item in batch)
            for item in batch:
                self.last = item.number
                yield item

    def decisions(self, loader: Loader) -> Iterator[Entry]:
        """Yield what is to happen with every page of every item.

        A generator, so that what goes wrong in storing a batch is not this item's fault.
        """
        for item, future in loader.ahead(self.items()):
            self.lease.current = item.origin
            self.report_progress()
            yield from self.decide_item(Work(item), future)

    def decide_item(self, work: Work, future: "Future[Loaded]") -> Iterator[Entry]:
        """Yield what is to happen with the pages of an item, from the first unfinished one."""
        with self.skip_on_fault(work):
            loaded = result(future, self.report_progress)
            if loaded.mark is not None:
                lastmod = self.lastmods.get(work.item.location, "")
                self.marks[work.item.origin] = replace(loaded.mark, lastmod=lastmod)
            if loaded.members or loaded.addresses:
                self.lastmods |= loaded.addresses
                list_items(self.lease, work.item, loaded, self.state, self.known_marks)
                self.finished += 1
            elif loaded.is_known and work.item.kind == Item.Kind.GIT:
                self.pass_repository(work, loaded)
            elif loaded.is_known:
                yield unchanged_page(work, self.state)
            else:
                sheets, folders = pending_sheets(work, loaded, self.state)
                for sheet in sheets:
                    self.lease.item = work.item
                    yield self.entry(work, sheet, folders)

    def pass_repository(self, work: Work, loaded: Loaded) -> None:
        """Write down that a repository is at the commit that was read before."""
        documents = self.job.collection.documents
        count = documents.filter(origin__startswith=f"{loaded.folder}/").count()
        work.item.sha1, work.item.documents = loaded.sha1, count
        work.item.counts = {"unchanged": count}
        work.end(Item.Status.UNCHANGED, "at the commit that was read before")
        self.finished += 1
        with transaction.atomic():
            self.lease.progress()
            work.save()

    def entry(self, work: Work, sheet: Sheet, folders: Sequence[str]) -> Entry:
        """Return what is to happen with a page; one of many may be left out."""
        prepare = self.preparer.prepare
        try:
            return decide(work, sheet, folders, self.state, force=self.force, prepare=prepare)
        except Unreadable as error:
            if work.is_single:
                raise
            return Entry(work, sheet, left_out=str(error))

    def take(self, entry: Entry, future: DraftFuture | None) -> None:
        """Put a page in line once it is described; what models fail over skips its item."""
        described_entry = None
        if not entry.work.is_over:
            with self.skip_on_fault(entry.work):
                described_entry = self.describe_entry(entry, future)
        if described_entry is not None:
            self.queue(described_entry)
        else:
            # Others of the same bytes or the same source may have its place.
            self.state.forget(entry.sheet.source)

    def describe_entry(self, entry: Entry, future: DraftFuture | None) -> Entry:
        """Return the entry as models describe it; what they have not answered is unchanged."""
        if entry.left_out:
            entry.work.warn(entry.sheet.source, f"left out, {entry.left_out}")
        if entry.draft is None:
            return entry
        described = self.describer.result(entry.draft, future)
        for reason in described.warnings:
            entry.work.warn(entry.sheet.source, reason)
        is_unanswered = bool(entry.questions) and not is_answered(described, entry.questions)
        return replace(entry, draft=None if is_unanswered else described)

    def queue(self, entry: Entry) -> None:
        """Put a page in line; what waits is stored when the page would make it too much."""
        chunks = entry.size + sum(each.size for each in self.entries)
        limit = 1 if self.lease.is_cautious else CHUNKS_AT_ONCE
        if self.entries and (chunks > limit or len(self.entries) >= PAGES_AT_ONCE):
            self.flush()
        self.entries.append(entry)

    def flush(self) -> None:
        """Embed what waits together, then write down page after page."""
        entries, self.entries = self.entries, []
        self.lease.item = entries[0].work.item if len(entries) == 1 else None
        drafts = [each.draft for each in entries if each.draft]
        texts = [text for draft in drafts for text in draft.embedding_texts()]
        former_sources = {source for draft in drafts for source in draft.sources}
        vectors = self.encoder.encode(texts, () if self.force else former_sources)
        begin, items_without_writes = 0, dict[int, Work]()
        for entry in entries:
            end = begin + entry.size
            if not entry.work.is_over:
                if entry.writes:
                    with self.skip_on_fault(entry.work):
                        self.write(entry, vectors[begin:end])
                else:
                    entry.work.pass_over() if entry.left_out else entry.work.count("unchanged")
                    items_without_writes[entry.work.item.pk] = entry.work
                self.finished += entry.work.is_over
            begin = end
        self.save_items(items_without_writes.values())
        self.encoder.forget()
        self.report_progress()

    def write(self, entry: Entry, vectors: Vectors) -> None:
        """Store one page, and what became of it, in one transaction."""
        work, collection = entry.work, self.job.collection
        with transaction.atomic():
            self.lease.progress()
            if entry.draft is not None:
                force = self.force or bool(entry.questions)
                outcome = store(collection, entry.draft, vectors, force=force)
                work.count(outcome, entry.size if outcome in {"new", "changed"} else 0)
            elif entry.is_copy:
                twin = record_copy(collection, entry.sheet)
                work.item.reason = f"the same as {twin.source}"
                work.count("duplicate")
            else:
                record_origin(collection, entry.sheet)
                work.count("unchanged")
            work.save()

    def save_items(self, works: Iterable[Work]) -> None:
        """Write down what became of items of which nothing was stored."""
        plain = [work.item.pk for work in works if work.is_plain]
        with transaction.atomic():
            self.lease.progress()
            Item.objects.filter(pk__in=plain).update(
                status=Item.Status.UNCHANGED,
                counts={"unchanged": 1},
                documents=1,
                body=None,
                updated=now(),
            )
            for work in works:
                if not work.is_plain:
                    work.save()

    @contextmanager
    def skip_on_fault(self, work: Work) -> Iterator[None]:
        """Set the item aside when the block fails over it, so that the others go on."""
        self.lease.item = work.item
        try:
            yield
        except Unreadable as error:
            self.skip(work, str(error))
        except FAULTS as error:
            log.exception("ingest %s: %s", self.job.pk, work.item.origin)
            self.skip(work, f"Docent failed over it: {type(error).__name__}: {error}")

    def skip(self, work: Work, reason: str) -> None:
        """Write down why an item was skipped."""
        work.end(Item.Status.SKIPPED, storable(reason)[:2000])
        self.finished += 1
        with transaction.atomic():
            self.lease.progress()
            work.save()

    def report_progress(self) -> None:
        """Say how far the job is. Raises LeaseLost and Cancelled."""
        self.lease.beat(self.lease.current)
        if self.watch is not None:
            self.watch(self.finished, len(self.state.listed), self.lease.current)
