"""Known: what a collection holds already, so that the same bytes are stored once."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.timezone import now

from knowledge import enrichment, model_calls
from knowledge.changes import digest
from knowledge.ingestion.drafts import Draft, Sheet
from knowledge.ingestion.sources import is_zip
from knowledge.models import Collection, Copy, Document, Ingest, Item

TEXTS_AT_ONCE = 50  # of documents, in memory


@dataclass
class Renewal:
    """The open questions about documents of a collection, each asked once in a job."""

    collection: Collection
    by_source: dict[str, frozenset[str]] = field(default_factory=dict)

    def look(self, origins: Iterable[str]) -> set[tuple[str, str]]:
        """Look for open questions about what is stored of these files.

        Return (origin, digest) of the documents there are any about. Without a model nothing is
        read.
        """
        if not model_calls.is_on():
            return set()
        held = Document.objects.filter(collection=self.collection, origin__in=list(origins))
        rows = held.values_list("source", "origin", "sha1", "updated", "content")
        texts, settled = {}, {}
        for source, origin, sha1, updated, content in rows.iterator(chunk_size=TEXTS_AT_ONCE):
            texts[source], settled[source] = (digest(content), updated), (origin, sha1)
        found = {
            source: names for source, names in model_calls.open_questions(texts).items() if names
        }
        self.by_source |= found
        return {settled[source] for source in found}

    def questions(self, sheet: Sheet) -> frozenset[str]:
        """Return what models are to be asked about a page that is stored already."""
        left = self.by_source.get(sheet.source, frozenset())
        return left - {model_calls.DESCRIPTION} if enrichment.says_all(sheet.page) else left


def is_answered(draft: Draft, questions: frozenset[str]) -> bool:
    """Tell whether models have answered one of these by now, so that the draft says more."""
    told = {draft.sheet.source: (digest(draft.page.content), now())}
    return not questions <= model_calls.open_questions(told)[draft.sheet.source]


TAKEN = (Item.Status.NEW, Item.Status.CHANGED, Item.Status.UNCHANGED)


@dataclass(frozen=True)
class Held:
    """A document as far as it matters to the next one."""

    source: str
    origin: str
    sha1: str


@dataclass
class Known:
    """The documents of a collection by source and by digest, kept current through a job."""

    job: Ingest
    listed: set[str] = field(default_factory=set)  # origins of the job's items
    taken: set[str] = field(default_factory=set)  # of those whose pages were looked at
    dropped: set[str] = field(default_factory=set)  # sources that their files hold no more
    unread: list[str] = field(default_factory=list)  # folders and archives nobody could list
    vanished: set[str] = field(default_factory=set)  # pages that a sitemap names no more
    by_source: dict[str, Held] = field(default_factory=dict)
    by_sha1: dict[str, Held] = field(default_factory=dict)
    by_origin: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # sources
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)  # origin → source, sha1
    # (origin, digest of its bytes) of files that need not be parsed.
    settled: set[tuple[str, str]] = field(default_factory=set)
    renewal: Renewal = field(init=False)

    def __post_init__(self) -> None:
        self.renewal = Renewal(self.job.collection)
        self.list_items()
        collection = self.job.collection
        documents = Document.objects.filter(collection=collection).order_by("created")
        for row in documents.values_list("source", "origin", "sha1"):
            self.add(Held(*row))
        copies = Copy.objects.filter(collection=collection)
        for source, origin, sha1 in copies.values_list("source", "origin", "sha1"):
            twin = self.by_sha1.get(sha1)
            # A source that is a document, too, was left behind by a job that did not end.
            is_alone = source not in self.by_source
            if twin is not None and is_alone and not self.is_gone(twin.origin):
                self.copies[origin] = (source, sha1)
                self.settled.add((origin, sha1))
        if self.job.options.get("force"):
            self.settled.clear()

    def list_items(self) -> None:
        """Take the origins of the job's items anew, as listing an archive adds some."""
        states = dict(self.job.items.values_list("origin", "status"))
        self.listed = set(states)
        pages = self.job.items.filter(kind=Item.Kind.URL, status=Item.Status.LISTED)
        self.vanished = {origin for gone in pages.values_list("gone", flat=True) for origin in gone}
        problems = self.job.options.get("unread", [])
        self.unread = [problem["source"] for problem in problems]
        self.unread += [
            origin
            for origin, status in states.items()
            if is_zip(origin) and status != Item.Status.LISTED
        ]
        self.taken |= {origin for origin, status in states.items() if status in TAKEN}

    def reopen(self, origins: Iterable[str]) -> None:
        """Have files parsed that hold what they held, if models have more to say of them."""
        if self.settled:
            # In place: the loader goes by the same set.
            self.settled.difference_update(self.renewal.look(origins))

    def add(self, held: Held) -> None:
        """Note what is stored, or about to be."""
        self.forget(held.source)
        self.by_source[held.source] = held
        self.by_sha1.setdefault(held.sha1, held)
        self.by_origin[held.origin].add(held.source)
        self.settled.add((held.origin, held.sha1))

    def forget(self, source: str) -> None:
        """Note that a source is no longer what it was."""
        held = self.by_source.pop(source, None)
        if held is None:
            return
        self.by_origin[held.origin].discard(source)
        self.settled.discard((held.origin, held.sha1))
        if self.by_sha1.get(held.sha1) == held:
            del self.by_sha1[held.sha1]

    def twin(self, sheet: Sheet) -> Held | None:
        """Return the document under another source that was made of the same bytes."""
        held = self.by_sha1.get(sheet.sha1)
        return held if held is not None and held.source != sheet.source else None

    def has_rival(self, sheet: Sheet) -> bool:
        """Tell whether an earlier file of this job holds a document of the same source."""
        held = self.by_source.get(sheet.source)
        if held is None or held.origin == sheet.origin or held.source in self.dropped:
            return False
        return held.origin in self.taken

    def is_gone(self, origin: str) -> bool:
        """Tell whether what a document was made of is gone from what this job lists."""
        options = self.job.options
        if options.get("keep_missing") or origin in self.listed:
            return False
        if origin in self.vanished:
            return True
        if any(is_in(origin, folder) for folder in self.unread):
            return False
        return any(is_in(origin, folder) for folder in options.get("folders", []))


def is_in(origin: str, folder: str) -> bool:
    """Tell whether it is that file or lies in that folder."""
    return origin == folder or origin.startswith(f"{folder}/")
