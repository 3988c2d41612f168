"""Pipeline: takes a job's items one after another and brings the collection to what they say."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from django.db import DataError, IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.timezone import now

from knowledge.embedding import Vectors
from knowledge.errors import Unreadable
from knowledge.ingestion.decisions import Entry, Work, judged, known_page, opened
from knowledge.ingestion.describer import Coming, Describing
from knowledge.ingestion.drafts import Sheet
from knowledge.ingestion.job_lease import Hold
from knowledge.ingestion.job_vectors import CHUNKS_AT_ONCE, Encoder
from knowledge.ingestion.loader import Loaded, Loader, list_items
from knowledge.ingestion.state import Known, is_answered
from knowledge.ingestion.store import adopt, copy, store
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

    def __init__(self, hold: Hold, watch: Watch | None = None) -> None:
        self.hold, self.watch, self.job = hold, watch, hold.job
        self.force = bool(self.job.options.get("force"))
        self.known = Known(self.job)
        self.encoder = Encoder(hold, self.tell)
        self.describing = Describing(self.tell)
        self.entries: list[Entry] = []
        self.last = 0  # number of the item taken last
        self.finished = len(self.known.listed) - self.waiting().count()

    def work(self) -> None:
        """Take every waiting item. Raises EmbeddingUnavailable, Lost and Cancelled."""
        with Loader(self.known.settled) as loader, self.describing:
            # An archive among the last items adds others.
            while self.waiting().exists():
                for entry, coming in self.describing.ahead(self.decisions(loader)):
                    self.take(entry, coming)
                self.flush()

    def waiting(self) -> QuerySet[Item]:
        """Return the items that wait and were not taken in this attempt."""
        waiting = self.job.items.filter(status=Item.Status.WAITING, number__gt=self.last)
        return waiting.order_by("number").defer("body")

    def items(self) -> Iterator[Item]:
        """Yield them."""
        while batch := list(self.waiting()[:PAGES_AT_ONCE]):
            self.known.reopen(item.origin for item in batch)
            for item in batch:
                self.last = item.number
                yield item

    def decisions(self, loader: Loader) -> Iterator[Entry]:
        """Yield what is to happen with every page of every item.

        A generator, so that what goes wrong in storing a batch is not this item's fault.
        """
        for item, coming in loader.ahead(self.items()):
            self.hold.current = item.origin
            self.tell()
            yield from self.decided(Work(item), coming)

    def decided(self, work: Work, coming: "Future[Loaded]") -> Iterator[Entry]:
        """Yield what is to happen with the pages of an item, from the first unfinished one."""
        with self.blamed(work):
            loaded = coming.result()
            if loaded.members or loaded.addresses:
                list_items(self.hold, work.item, loaded, self.known)
                self.finished += 1
            elif loaded.is_known:
                yield known_page(work, self.known)
            else:
                sheets, folders = opened(work, loaded, self.known)
                for sheet in sheets:
                    self.hold.item = work.item
                    yield self.entry(work, sheet, folders)

    def entry(self, work: Work, sheet: Sheet, folders: Sequence[str]) -> Entry:
        """Return what is to happen with a page; one of many may be left out."""
        window = self.encoder.window
        try:
            return judged(work, sheet, folders, self.known, force=self.force, window=window)
        except Unreadable as error:
            if work.is_single:
                raise
            return Entry(work, sheet, left_out=str(error))

    def take(self, entry: Entry, coming: Coming | None) -> None:
        """Put a page in line once it is described; what models fail over skips its item."""
        ready = None
        if not entry.work.is_over:
            with self.blamed(entry.work):
                ready = self.completed(entry, coming)
        if ready is not None:
            self.enter(ready)
        else:
            # Others of the same bytes or the same source may have its place.
            self.known.forget(entry.sheet.source)

    def completed(self, entry: Entry, coming: Coming | None) -> Entry:
        """Return the entry as models describe it; what they have not answered is unchanged."""
        if entry.left_out:
            entry.work.warn(entry.sheet.source, f"left out, {entry.left_out}")
        if entry.draft is None:
            return entry
        made = self.describing.result(entry.draft, coming)
        for reason in made.warnings:
            entry.work.warn(entry.sheet.source, reason)
        is_vain = bool(entry.questions) and not is_answered(made, entry.questions)
        return replace(entry, draft=None if is_vain else made)

    def enter(self, entry: Entry) -> None:
        """Put a page in line; what waits is stored when the page would make it too much."""
        chunks = entry.size + sum(each.size for each in self.entries)
        most = 1 if self.hold.is_cautious else CHUNKS_AT_ONCE
        if self.entries and (chunks > most or len(self.entries) >= PAGES_AT_ONCE):
            self.flush()
        self.entries.append(entry)

    def flush(self) -> None:
        """Embed what waits together, then write down page after page."""
        entries, self.entries = self.entries, []
        self.hold.item = entries[0].work.item if len(entries) == 1 else None
        drafts = [each.draft for each in entries if each.draft]
        texts = [text for draft in drafts for text in draft.embedded()]
        former = {source for draft in drafts for source in draft.sources}
        vectors = self.encoder.encode(texts, () if self.force else former)
        begin, quiet = 0, dict[int, Work]()
        for entry in entries:
            end = begin + entry.size
            if not entry.work.is_over:
                if entry.writes:
                    with self.blamed(entry.work):
                        self.write(entry, vectors[begin:end])
                else:
                    entry.work.pass_over() if entry.left_out else entry.work.count("unchanged")
                    quiet[entry.work.item.pk] = entry.work
                self.finished += entry.work.is_over
            begin = end
        self.settle(quiet.values())
        self.encoder.forget()
        self.tell()

    def write(self, entry: Entry, vectors: Vectors) -> None:
        """Store one page, and what became of it, in one transaction."""
        work, collection = entry.work, self.job.collection
        with transaction.atomic():
            self.hold.progress()
            if entry.draft is not None:
                force = self.force or bool(entry.questions)
                outcome = store(collection, entry.draft, vectors, force=force)
                work.count(outcome, entry.size if outcome in {"new", "changed"} else 0)
            elif entry.is_copy:
                twin = copy(collection, entry.sheet)
                work.item.reason = f"the same as {twin.source}"
                work.count("duplicate")
            else:
                adopt(collection, entry.sheet)
                work.count("unchanged")
            work.save()

    def settle(self, works: Iterable[Work]) -> None:
        """Write down what became of items of which nothing was stored."""
        plain = [work.item.pk for work in works if work.is_plain]
        with transaction.atomic():
            self.hold.progress()
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
    def blamed(self, work: Work) -> Iterator[None]:
        """Set the item aside when the block fails over it, so that the others go on."""
        self.hold.item = work.item
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
            self.hold.progress()
            work.save()

    def tell(self) -> None:
        """Say how far the job is. Raises Lost and Cancelled."""
        self.hold.beat(self.hold.current)
        if self.watch is not None:
            self.watch(self.finished, len(self.known.listed), self.hold.current)
