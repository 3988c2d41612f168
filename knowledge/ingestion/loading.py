"""Loading: gets the bytes of items and has them parsed, a little ahead of who stores them."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from knowledge.fetching import fetch, pages_of
from knowledge.ingestion.drafts import Sheet, digest, sheets
from knowledge.ingestion.files import File, is_zip
from knowledge.ingestion.unpacking import Member, members
from knowledge.models import Item
from knowledge.reading import Reader

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

    def __init__(self, known: set[tuple[str, str]]) -> None:
        self.known = known  # (origin, digest) of what needs no parsing
        self.reader = Reader()
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="ingest loader")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.reader.close()  # wakes the thread up, should it wait for the parser
        self.pool.shutdown()
        self.reader.close()

    def ahead(self, items: Iterable[Item]) -> Iterator[tuple[Item, "Future[Loaded]"]]:
        """Yield the items in their order, each with what it holds as soon as that is known."""
        waiting: deque[tuple[Item, Future[Loaded]]] = deque()
        for item in items:
            # Read here: the database is not for the loader's thread.
            body = bytes(item.body or b"") if item.kind == Item.Kind.UPLOAD else b""
            waiting.append((item, self.pool.submit(self.load, item, body)))
            if len(waiting) >= AHEAD:
                yield waiting.popleft()
        yield from waiting

    def load(self, item: Item, body: bytes) -> Loaded:
        """Return what the item holds. Raises Unreadable."""
        if item.kind == Item.Kind.STORED:
            return Loaded()
        if item.kind == Item.Kind.URL:
            return self.fetched(item)
        if item.kind == Item.Kind.FILE:
            body = File(Path(item.location), item.origin).read()
        sha1 = digest(body)
        if (item.origin, sha1) in self.known:
            return Loaded(sha1, is_known=True)
        if is_zip(item.origin):
            ignored = Counter[str]()
            return Loaded(sha1, members=members(item.origin, body, ignored), ignored=ignored)
        pages, _ = self.reader.read(item.origin, body)
        return Loaded(sha1, sheets=sheets(item.origin, sha1, pages))

    def fetched(self, item: Item) -> Loaded:
        """Return the page at an address, or the addresses that a sitemap names."""
        addresses = pages_of(item.location)
        if addresses != [item.location]:
            return Loaded(addresses=addresses)
        found = fetch(item.location)
        pages, _ = self.reader.read(found.name, found.body, found.charset)
        return Loaded(digest(found.body), sheets=sheets(item.origin, "", pages))


def folders(item: Item) -> list[str]:
    """Return the folders an item lies in, outermost first, without the root."""
    if item.kind == Item.Kind.URL:
        return list(PurePosixPath(unquote(urlsplit(item.location).path)).parts[1:-1])
    return item.origin.split("/")[1:-1]
