"""Loader: gets the bytes of items and has them parsed; lists what archives and sitemaps hold."""

import json
from collections import Counter, deque
from collections.abc import Collection as Group
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from django.db import transaction
from django.db.models import QuerySet

from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import Sheet, digest, sheets
from knowledge.ingestion.job_lease import JobLease
from knowledge.ingestion.plan import LONGEST, SHARE, add_items, url_items
from knowledge.ingestion.preparer import close
from knowledge.ingestion.sources import File, Member, as_known, is_zip, members
from knowledge.ingestion.state import CollectionState
from knowledge.models import Copy, Document, Ingest, Item
from knowledge.postgres_text import storable
from knowledge.sandbox.reader import Reader
from knowledge.web import fetch, pages_of

AHEAD = 3  # items: one for the parser to work at, and two that hide its pauses


@dataclass(frozen=True)
class Loaded:
    """What an item holds: pages, or members of an archive, or further addresses."""

    sha1: str = ""  # of its bytes
    is_known: bool = False  # not parsed, as the same bytes are stored already
    sheets: Sequence[Sheet] = ()
    members: Sequence[Member] = ()
    addresses: Sequence[str] = ()
    ignored: dict[str, int] = field(default_factory=dict)


class Loader:
    """Loads items in a thread of its own, which has the child process that parses."""

    def __init__(self, unchanged_files: set[tuple[str, str]]) -> None:
        self.unchanged_files = unchanged_files  # (origin, digest) of what needs no parsing
        self.reader = Reader()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="ingest loader")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        close(self.pool, self.reader)

    def ahead(self, items: Iterable[Item]) -> Iterator[tuple[Item, "Future[Loaded]"]]:
        """Yield the items in their order, each with what it holds as soon as that is known."""
        queue: deque[tuple[Item, Future[Loaded]]] = deque()
        for item in items:
            # Read here: the database is not for the loader's thread.
            body = bytes(item.body or b"") if item.kind == Item.Kind.UPLOAD else b""
            queue.append((item, self.pool.submit(self.load, item, body)))
            if len(queue) >= AHEAD:
                yield queue.popleft()
        yield from queue

    def load(self, item: Item, body: bytes) -> Loaded:
        """Return what the item holds. Raises Unreadable."""
        if item.kind == Item.Kind.STORED:
            return Loaded()
        if item.kind == Item.Kind.URL:
            return self.load_url(item)
        if item.kind == Item.Kind.FILE:
            body = File(Path(item.location), item.origin).read()
        sha1 = digest(body)
        if (item.origin, sha1) in self.unchanged_files:
            return Loaded(sha1, is_known=True)
        if is_zip(item.origin):
            ignored = Counter[str]()
            return Loaded(sha1, members=members(item.origin, body, ignored), ignored=ignored)
        pages, _ = self.reader.read(as_known(item.origin), body)
        return Loaded(sha1, sheets=sheets(item.origin, sha1, pages))

    def load_url(self, item: Item) -> Loaded:
        """Return the page at an address, or the addresses that a sitemap names."""
        addresses = pages_of(item.location)
        if addresses != [item.location]:
            return Loaded(addresses=addresses)
        document = fetch(item.location)
        pages, _ = self.reader.read(document.name, document.body, document.charset)
        return Loaded(digest(document.body), sheets=sheets(item.origin, "", pages))


def folders(item: Item) -> list[str]:
    """Return the folders an item lies in, outermost first, without the root."""
    if item.kind == Item.Kind.URL:
        return list(PurePosixPath(unquote(urlsplit(item.location).path)).parts[1:-1])
    return item.origin.split("/")[1:-1]


TOO_FEW = (
    "it names less than half of the pages it named before, so none was removed; if they are gone, "
    "delete their documents"
)


@dataclass(frozen=True)
class Listing:
    """What a sitemap names, kept as the body of its item until the next listing."""

    named: list[str]  # origins
    missing: list[str]  # named before, no more, and still there

    def as_bytes(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(vars(self)).encode()


def compare_listings(item: Item, named: list[str]) -> None:
    """Note in the sitemap's item what it names, as origins, and which pages are gone.

    Of what it named before, a page is gone that nobody asked for by itself and no other sitemap
    names; none is when less than half are left, as the sitemap may be another one, or broken.
    In the caller's transaction; saves what an earlier listing kept, and not the item.
    """
    others = listings(item).exclude(origin=item.origin)
    former = listings(item).filter(origin=item.origin)
    before = {
        origin for listing in read_listings(former) for origin in [*listing.named, *listing.missing]
    }
    stored = stored_origins(item, before)
    missing = stored - {*named}
    needed = requested_origins(item, missing) | {
        origin for listing in read_listings(others) for origin in listing.named
    }
    if item.ingest.options.get("keep_missing"):
        item.gone = []
    elif len(stored) - len(missing) < SHARE * len(stored):
        item.warnings = [{"source": item.origin, "reason": TOO_FEW}]
    else:
        item.gone = sorted(missing - needed)
    former.update(body=None)
    item.body = Listing(named, sorted(missing)).as_bytes()


def listings(item: Item) -> QuerySet[Item]:
    """Return the other items of the collection that keep what a sitemap names."""
    items = Item.objects.filter(
        ingest__collection=item.ingest.collection_id,
        kind=Item.Kind.URL,
        status=Item.Status.LISTED,
        body__isnull=False,
    )
    return items.exclude(pk=item.pk)


def read_listings(items: QuerySet[Item]) -> list[Listing]:
    """Return what they keep."""
    bodies = items.values_list("body", flat=True)
    return [Listing(**json.loads(bytes(body or b""))) for body in bodies]


def stored_origins(item: Item, origins: Group[str]) -> set[str]:
    """Return those that documents or copies of the collection come from."""
    documents, copies = (
        kind._default_manager.filter(
            collection=item.ingest.collection_id, origin__in=origins
        ).values_list("origin", flat=True)
        for kind in (Document, Copy)
    )
    return {*documents, *copies}


def requested_origins(item: Item, origins: Group[str]) -> set[str]:
    """Return those that somebody asked for by themselves."""
    jobs = Ingest.objects.filter(
        collection=item.ingest.collection_id, options__asked__has_any_keys=[*origins]
    )
    requests = jobs.values_list("options__asked", flat=True)
    return {address for addresses in requests for address in addresses} & {*origins}


LISTED_FIELDS = ("status", "body", "sha1", "gone", "warnings")


def list_items(lease: JobLease, item: Item, loaded: Loaded, state: CollectionState) -> None:
    """Append what the item holds to its job, once, and let go of the item's bytes."""
    job = lease.job
    state.reopen(storable(member.origin)[:LONGEST] for member in loaded.members)
    with transaction.atomic():
        lease.progress()
        new_addresses = [address for address in loaded.addresses if address not in state.listed]
        items = [*url_items(new_addresses), *member_items(loaded.members, state)]
        add_items(job, items)
        item.status, item.body, item.sha1 = Item.Status.LISTED, None, loaded.sha1
        if loaded.addresses:
            compare_listings(item, [address[:LONGEST] for address in loaded.addresses])
        item.save(update_fields=LISTED_FIELDS)
        ignored = job.options.setdefault("ignored", {})
        for reason, count in loaded.ignored.items():
            ignored[reason] = ignored.get(reason, 0) + count
        if item.kind == Item.Kind.FILE:
            # Of an upload nobody knows whether it is the same archive or another of its name.
            job.options.setdefault("folders", []).append(item.origin)
        Ingest.objects.filter(pk=job.pk).update(options=job.options)
    state.list_items()


def member_items(members: Sequence[Member], state: CollectionState) -> Iterator[Item]:
    """Yield an item for each member; those whose bytes are stored already are done with."""
    for member in members:
        item = Item(kind=Item.Kind.UPLOAD, origin=storable(member.origin)[:LONGEST])
        try:
            body = member.read()
        except Unreadable as error:
            item.status, item.reason = Item.Status.SKIPPED, str(error)
        else:
            item.sha1 = digest(body)
            if (
                state.by_origin.get(item.origin)
                and (item.origin, item.sha1) in state.unchanged_files
            ):
                item.status, item.counts, item.documents = (
                    Item.Status.UNCHANGED,
                    {"unchanged": 1},
                    1,
                )
            else:
                item.body, item.sha1 = body, ""
        yield item
