"""State: what a collection holds already, so that the same bytes are stored once."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.timezone import now

from knowledge import enrichment, model_calls
from knowledge.changes import digest
from knowledge.ingestion.drafts import Draft, Sheet
from knowledge.ingestion.edits import Edits
from knowledge.ingestion.sources import is_zip
from knowledge.models import Collection, Copy, Document, Ingest, Item

TEXTS_AT_ONCE = 50  # of documents, in memory


@dataclass
class OpenQuestions:
    """The open questions about documents of a collection, each asked once in a job."""

    collection: Collection
    names: frozenset[str]  # of the questions that the job asks
    by_source: dict[str, frozenset[str]] = field(default_factory=dict)

    def look(self, origins: Iterable[str]) -> set[tuple[str, str]]:
        """Look for open questions about what is stored of these files.

        Return (origin, digest) of the documents there are any about. Without a question nothing
        is read.
        """
        if not self.names:
            return set()
        documents = Document.objects.filter(collection=self.collection, origin__in=list(origins))
        rows = documents.values_list("source", "origin", "sha1", "updated", "content")
        texts, origins_and_digests = {}, {}
        for source, origin, sha1, updated, content in rows.iterator(chunk_size=TEXTS_AT_ONCE):
            texts[source], origins_and_digests[source] = (digest(content), updated), (origin, sha1)
        open_names = model_calls.open_questions(texts, self.names)
        questions = {source: names for source, names in open_names.items() if names}
        self.by_source |= questions
        return {origins_and_digests[source] for source in questions}

    def questions(self, sheet: Sheet) -> frozenset[str]:
        """Return what models are to be asked about a page that is stored already."""
        questions = self.by_source.get(sheet.source, frozenset())
        return (
            questions - {model_calls.DESCRIPTION} if enrichment.says_all(sheet.page) else questions
        )


def questions_of(job: Ingest) -> frozenset[str]:
    """Return the names of the questions about documents that a job asks models."""
    return model_calls.asked(describe=bool(job.options.get("describe")))


def is_answered(draft: Draft, questions: frozenset[str]) -> bool:
    """Tell whether models have answered one of these by now, so that the draft says more."""
    text = {draft.sheet.source: (digest(draft.page.content), now())}
    return not questions <= model_calls.open_questions(text, questions)[draft.sheet.source]


STORED_STATUSES = (Item.Status.NEW, Item.Status.CHANGED, Item.Status.UNCHANGED)


@dataclass(frozen=True)
class StoredDocument:
    """A document as far as it matters to the next one."""

    source: str
    origin: str
    sha1: str


@dataclass
class CollectionState:
    """The documents of a collection by source and by digest, kept current through a job."""

    job: Ingest
    listed: set[str] = field(default_factory=set)  # origins of the job's items
    read_origins: set[str] = field(default_factory=set)  # of those whose pages were looked at
    vanished_sources: set[str] = field(default_factory=set)  # sources that their files hold no more
    unlisted: list[str] = field(default_factory=list)  # folders and archives nobody could list
    vanished_pages: set[str] = field(default_factory=set)  # pages that a sitemap names no more
    by_source: dict[str, StoredDocument] = field(default_factory=dict)
    by_sha1: dict[str, StoredDocument] = field(default_factory=dict)
    by_origin: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # sources
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)  # origin → source, sha1
    # (origin, digest of its bytes) of files that need not be parsed.
    unchanged_files: set[tuple[str, str]] = field(default_factory=set)
    edits: dict[str, Edits] = field(default_factory=dict)  # of staff, by source
    open_questions: OpenQuestions = field(init=False)

    def __post_init__(self) -> None:
        self.open_questions = OpenQuestions(self.job.collection, questions_of(self.job))
        self.list_items()
        collection = self.job.collection
        documents = Document.objects.filter(collection=collection).order_by("created")
        self.edits = dict(documents.exclude(edits={}).values_list("source", "edits"))
        for row in documents.values_list("source", "origin", "sha1"):
            self.add(StoredDocument(*row))
        copies = Copy.objects.filter(collection=collection)
        for source, origin, sha1 in copies.values_list("source", "origin", "sha1"):
            twin = self.by_sha1.get(sha1)
            # A source that is a document, too, was left behind by a job that did not end.
            is_alone = source not in self.by_source
            if twin is not None and is_alone and not self.is_gone(twin.origin):
                self.copies[origin] = (source, sha1)
                self.unchanged_files.add((origin, sha1))
        if self.job.options.get("force"):
            self.unchanged_files.clear()

    def list_items(self) -> None:
        """Take the origins of the job's items anew, as listing an archive adds some."""
        states = dict(self.job.items.values_list("origin", "status"))
        self.listed = set(states)
        pages = self.job.items.filter(kind=Item.Kind.URL, status=Item.Status.LISTED)
        self.vanished_pages = {
            origin for gone in pages.values_list("gone", flat=True) for origin in gone
        }
        problems = self.job.options.get("unread", [])
        self.unlisted = [problem["source"] for problem in problems]
        self.unlisted += [
            origin
            for origin, status in states.items()
            if is_zip(origin) and status != Item.Status.LISTED
        ]
        self.read_origins |= {
            origin for origin, status in states.items() if status in STORED_STATUSES
        }

    def reopen(self, origins: Iterable[str]) -> None:
        """Have files parsed that hold what they held, if models have more to say of them."""
        if self.unchanged_files:
            # In place: the loader goes by the same set.
            self.unchanged_files.difference_update(self.open_questions.look(origins))

    def add(self, document: StoredDocument) -> None:
        """Note what is stored, or about to be."""
        self.forget(document.source)
        self.by_source[document.source] = document
        self.by_sha1.setdefault(document.sha1, document)
        self.by_origin[document.origin].add(document.source)
        self.unchanged_files.add((document.origin, document.sha1))

    def forget(self, source: str) -> None:
        """Note that a source is no longer what it was."""
        document = self.by_source.pop(source, None)
        if document is None:
            return
        self.by_origin[document.origin].discard(source)
        self.unchanged_files.discard((document.origin, document.sha1))
        if self.by_sha1.get(document.sha1) == document:
            del self.by_sha1[document.sha1]

    def twin(self, sheet: Sheet) -> StoredDocument | None:
        """Return the document under another source that was made of the same bytes."""
        document = self.by_sha1.get(sheet.sha1)
        return document if document is not None and document.source != sheet.source else None

    def has_rival(self, sheet: Sheet) -> bool:
        """Tell whether an earlier file of this job holds a document of the same source."""
        document = self.by_source.get(sheet.source)
        if (
            document is None
            or document.origin == sheet.origin
            or document.source in self.vanished_sources
        ):
            return False
        return document.origin in self.read_origins

    def is_gone(self, origin: str) -> bool:
        """Tell whether what a document was made of is gone from what this job lists."""
        options = self.job.options
        if options.get("keep_missing") or origin in self.listed:
            return False
        if origin in self.vanished_pages:
            return True
        if any(is_in(origin, folder) for folder in self.unlisted):
            return False
        return any(is_in(origin, folder) for folder in options.get("folders", []))


def is_in(origin: str, folder: str) -> bool:
    """Tell whether it is that file or lies in that folder."""
    return origin == folder or origin.startswith(f"{folder}/")
