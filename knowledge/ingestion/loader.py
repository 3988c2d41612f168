"""Loader: gets the bytes of items and has them parsed; lists what archives and sitemaps hold."""

import json
from collections import Counter, deque
from collections.abc import Collection as Group
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import Sheet, digest, sheets
from knowledge.ingestion.job_lease import JobLease
from knowledge.ingestion.page_marks import Mark
from knowledge.ingestion.plan import LONGEST, SHARE, add_items, url_items
from knowledge.ingestion.preparer import close
from knowledge.ingestion.repository_files import RepositoryFile, Wanted
from knowledge.ingestion.sources import File, Member, as_known, is_zip, members
from knowledge.ingestion.state import CollectionState
from knowledge.models import Copy, Document, Ingest, Item
from knowledge.parsing import Page
from knowledge.postgres_text import storable
from knowledge.sandbox.reader import Reader
from knowledge.web import fetch, pages_of
from knowledge.web.fetch import NotModified
from knowledge.web.git_repository import fetch_commit, head

AHEAD = 3  # items: one for the parser to work at, and two that hide its pauses


@dataclass(frozen=True)
class Loaded:
    """What an item holds: pages, or members of an archive, or further addresses."""

    sha1: str = ""  # of its bytes
    is_known: bool = False  # not parsed, as the same bytes are stored already
    sheets: Sequence[Sheet] = ()
    members: Sequence[Member | RepositoryFile] = ()
    addresses: dict[str, str] = field(default_factory=dict)  # page → its change, where said
    folder: str = ""  # whose documents are gone that are not among the members
    mark: Mark | None = None  # of the page
    ignored: dict[str, int] = field(default_factory=dict)


def load_repository(wanted: Wanted) -> Loaded:
    """Return the files of a repository; known, when it is at the same commit. Raises Unreadable."""
    sha, branch = head(wanted.repository)
    if sha == wanted.known:
        return Loaded(sha, is_known=True, folder=wanted.folder)
    commit = fetch_commit(wanted.repository, branch)
    ignored = Counter[str]()
    files = list(wanted.files(commit, ignored))
    if len(files) > settings.FETCH_MAX_PAGES:
        raise Unreadable(
            f"it holds more than {settings.FETCH_MAX_PAGES:,} files that are wanted "
            "(FETCH_MAX_PAGES): name a folder or patterns"
        )
    if not files:
        raise Unreadable(
            "there is no file of what is wanted in it, so what was taken in from it stays"
        )
    return Loaded(commit.sha, members=files, folder=wanted.folder, ignored=ignored)


def with_place(page: Page, location: str, *, is_single: bool) -> Page:
    """Return a page with what is known of its place where it says nothing of that itself."""
    known = json.loads(location)
    if not is_single:
        known.pop("source", None)
    return replace(
        page, **{name: value for name, value in known.items() if not getattr(page, name)}
    )


class Loader:
    """Loads items in a thread of its own, which has the child process that parses."""

    def __init__(
        self, unchanged_files: set[tuple[str, str]], marks: Mapping[str, Mark] | None = None
    ) -> None:
        self.unchanged_files = unchanged_files  # (origin, digest) of what needs no parsing
        self.marks = marks or {}  # of the pages that are known already, by origin
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
        if item.kind == Item.Kind.GIT:
            return load_repository(Wanted.read(item.location))
        if item.kind == Item.Kind.FILE:
            body = File(Path(item.location), item.origin).read()
        sha1 = digest(body)
        if (item.origin, sha1) in self.unchanged_files:
            return Loaded(sha1, is_known=True)
        if is_zip(item.origin):
            ignored = Counter[str]()
            return Loaded(sha1, members=members(item.origin, body, ignored), ignored=ignored)
        pages, _ = self.reader.read(as_known(item.origin), body)
        if item.kind == Item.Kind.UPLOAD and item.location:
            pages = [with_place(page, item.location, is_single=len(pages) == 1) for page in pages]
        return Loaded(sha1, sheets=sheets(item.origin, sha1, pages))

    def load_url(self, item: Item) -> Loaded:
        """Return the page at an address, or the addresses that a sitemap names."""
        addresses = pages_of(item.location)
        if [*addresses] != [item.location]:
            return Loaded(addresses=addresses)
        mark = self.marks.get(item.origin, Mark())
        try:
            document = fetch(item.location, etag=mark.etag, last_modified=mark.last_modified)
        except NotModified:
            return Loaded(is_known=True, mark=mark)
        pages, _ = self.reader.read(document.name, document.body, document.charset)
        return Loaded(
            digest(document.body),
            sheets=sheets(item.origin, "", pages),
            mark=Mark(document.etag, document.last_modified),
        )


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


def list_items(
    lease: JobLease,
    item: Item,
    loaded: Loaded,
    state: CollectionState,
    marks: Mapping[str, Mark] | None = None,
) -> None:
    """Append what the item holds to its job, once, and let go of the item's bytes."""
    job = lease.job
    state.reopen(storable(member.origin)[:LONGEST] for member in loaded.members)
    with transaction.atomic():
        lease.progress()
        new_addresses = [address for address in loaded.addresses if address not in state.listed]
        pages = page_items(new_addresses, loaded.addresses, marks or {}, state)
        items = [*pages, *member_items(loaded.members, state)]
        add_items(job, items)
        item.status, item.body, item.sha1 = Item.Status.LISTED, None, loaded.sha1
        if loaded.addresses:
            compare_listings(item, [address[:LONGEST] for address in loaded.addresses])
        item.save(update_fields=LISTED_FIELDS)
        ignored = job.options.setdefault("ignored", {})
        for reason, count in loaded.ignored.items():
            ignored[reason] = ignored.get(reason, 0) + count
        if item.kind in {Item.Kind.FILE, Item.Kind.GIT}:
            # Of an upload nobody knows whether it is the same archive or another of its name.
            job.options.setdefault("folders", []).append(loaded.folder or item.origin)
        Ingest.objects.filter(pk=job.pk).update(options=job.options)
    state.list_items()


def page_items(
    new: Iterable[str],
    lastmods: Mapping[str, str],
    marks: Mapping[str, Mark],
    state: CollectionState,
) -> Iterator[Item]:
    """Yield an item for each page; those of which the sitemap says what it said are done with."""
    for item in url_items(new):
        mark, lastmod = marks.get(item.origin), lastmods[item.location]
        is_same = mark is not None and lastmod and mark.lastmod == lastmod
        if is_same and state.by_origin.get(item.origin):
            item.status, item.counts, item.documents = Item.Status.UNCHANGED, {"unchanged": 1}, 1
        yield item


def member_items(
    members: Sequence[Member | RepositoryFile], state: CollectionState
) -> Iterator[Item]:
    """Yield an item for each member; those whose bytes are stored already are done with."""
    for member in members:
        item = Item(
            kind=Item.Kind.UPLOAD,
            origin=storable(member.origin)[:LONGEST],
            location=storable(member.location),
        )
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
