"""Decisions: what is to happen with each page of an item, and what became of the item."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils.timezone import now

from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import Draft, Prepare, Sheet, draft
from knowledge.ingestion.edits import NO_EDITS
from knowledge.ingestion.loader import Loaded, folders
from knowledge.ingestion.report import Outcome
from knowledge.ingestion.state import CollectionState, StoredDocument
from knowledge.models import Document, Item
from knowledge.parsing import Page

WARNINGS = 50  # kept per item
NOTHING = "none of its documents could be taken in"
ITEM_FIELDS = (
    "status", "reason", "sha1", "documents", "counts", "chunks", "warnings", "gone", "body",
    "updated",
)  # fmt: skip


@dataclass
class Work:
    """An item whose pages are being taken in."""

    item: Item
    left: int = 1  # pages that are not finished
    is_single: bool = True
    sources: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Whether nothing more of it is to be stored."""
        return self.item.status != Item.Status.WAITING

    @property
    def is_plain(self) -> bool:
        """Whether all there is to say is that its one page is unchanged."""
        item = self.item
        return item.status == Item.Status.UNCHANGED and not item.warnings and item.documents == 1

    def warn(self, source: str, reason: str) -> None:
        """Note something that whoever ingests the item should know."""
        if len(self.item.warnings) < WARNINGS:
            self.item.warnings.append({"source": source, "reason": reason})

    def count(self, outcome: Outcome, chunks: int = 0) -> None:
        """Note what became of the next page; after the last one the item is over."""
        self.item.counts[outcome] = self.item.counts.get(outcome, 0) + 1
        self.item.chunks += chunks
        self.pass_over()

    def pass_over(self) -> None:
        """Note that a page is done with, though nothing became of it."""
        self.item.documents += 1
        self.left -= 1
        if self.left == 0:
            self.end(item_status(self.item), "" if self.item.counts else NOTHING)

    def end(self, status: Item.Status, reason: str = "") -> None:
        """Set what became of the item; one that failed keeps its bytes for another attempt."""
        self.item.status, self.item.updated = status, now()
        self.item.reason = reason or self.item.reason
        if status != Item.Status.SKIPPED:
            self.item.body = None

    def save(self) -> None:
        """Write the item as it stands."""
        fields = [name for name in ITEM_FIELDS if name != "body" or self.item.body is None]
        self.item.save(update_fields=fields)


@dataclass(frozen=True)
class Entry:
    """What is to happen with one page, in its turn; nothing when it is unchanged."""

    work: Work
    sheet: Sheet
    draft: Draft | None = None  # to be stored
    is_copy: bool = False
    is_moved: bool = False  # from another file
    left_out: str = ""  # why
    # Why it is taken in although it is unchanged: what no model has answered about it.
    questions: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many chunks are to be embedded for it."""
        return len(self.draft.parts) if self.draft else 0

    @property
    def writes(self) -> bool:
        """Whether rows of documents change."""
        return self.draft is not None or self.is_copy or self.is_moved


def pending_sheets(
    work: Work, loaded: Loaded, state: CollectionState
) -> tuple[Sequence[Sheet], Sequence[str]]:
    """Return the pages that are still to be decided on, and the folders they lie in.

    What an earlier attempt finished is left out, unless the bytes are others by now. Raises
    Unreadable.
    """
    item, sheets, crumbs = work.item, loaded.sheets, folders(work.item)
    if item.kind == Item.Kind.STORED:
        sheets, crumbs = [stored_sheet(item)], []
    if not item.sha1 or item.sha1 != loaded.sha1 or item.documents >= len(sheets):
        item.sha1, item.documents, item.counts, item.chunks = loaded.sha1, 0, {}, 0
    state.read_origins.add(item.origin)
    sources = {sheet.source for sheet in sheets}
    # A document that is stored says nothing of the others of its file.
    is_whole = item.kind != Item.Kind.STORED
    item.gone = sorted(state.by_origin.get(item.origin, set()) - sources) if is_whole else []
    state.vanished_sources.update(item.gone)
    item.warnings = []
    work.is_single = len(sheets) == 1
    for sheet in sheets:
        for reason in sheet.page.warnings:
            work.warn(sheet.source, reason)
    pending = sheets[item.documents :]
    work.left = len(pending)
    return pending, crumbs


def stored_sheet(item: Item) -> Sheet:
    """Return what is stored of a document as a page. Raises Unreadable when it was deleted."""
    document = Document.objects.filter(pk=item.location).first()
    if document is None:
        raise Unreadable("the document was deleted")
    page = page_of(document)
    return Sheet(document.origin, document.source, document.sha1, page, document.stated)


def unchanged_page(work: Work, state: CollectionState) -> Entry:
    """Return the entry of a file that holds the bytes it held before."""
    origin = work.item.origin
    state.read_origins.add(origin)
    sources = state.by_origin.get(origin)
    if not sources and origin not in state.copies:
        raise Unreadable("another document of this run has the same source")
    source, sha1 = (next(iter(sources)), "") if sources else state.copies[origin]
    # A copy whose twin has just changed becomes a document when the job is closed.
    is_copy = not sources and sha1 in state.by_sha1
    return Entry(work, Sheet(origin, source, sha1, Page("")), is_copy=is_copy)


def item_status(item: Item) -> Item.Status:
    """Return what became of an item as a whole."""
    kinds = set(item.counts)
    if not kinds:
        return Item.Status.SKIPPED
    if len(kinds) == 1 and not (item.gone and kinds != {"duplicate"}):
        return Item.Status(kinds.pop())
    untouched = kinds <= {"unchanged", "duplicate"} and not item.gone
    return Item.Status.UNCHANGED if untouched else Item.Status.CHANGED


def decide(
    work: Work,
    sheet: Sheet,
    folders: Sequence[str],
    state: CollectionState,
    *,
    force: bool,
    prepare: Prepare,
) -> Entry:
    """Return what is to happen with a page. Raises Unreadable."""
    if sheet.source in work.sources or state.has_rival(sheet):
        raise Unreadable(f"another document of this run has the same source, {sheet.source!r}")
    work.sources.add(sheet.source)
    document, twin = state.by_source.get(sheet.source), state.twin(sheet)
    questions: frozenset[str] = frozenset()
    if document is not None and document.sha1 == sheet.sha1:
        questions = frozenset() if force else state.open_questions.questions(sheet)
        if not force and not questions:
            return Entry(work, sheet, is_moved=document.origin != sheet.origin)
        twin = None
    if twin is not None and not state.is_gone(twin.origin):
        if document is not None:
            work.item.gone.append(sheet.source)
            state.forget(sheet.source)
        return Entry(work, sheet, is_copy=True)
    former = twin.source if twin is not None and document is None else ""
    edits = state.edits.get(former or sheet.source, NO_EDITS)
    new_draft = draft(sheet, folders, prepare, former, edits)
    for name in sorted(edits.keys() - new_draft.edits.keys()):
        work.warn(sheet.source, f"its own {name} is another now and took the place of an edit")
    if former:
        state.forget(former)
    is_moved = document is not None and document.origin != sheet.origin
    state.add(StoredDocument(sheet.source, sheet.origin, sheet.sha1))
    return Entry(work, sheet, new_draft, is_moved=is_moved, questions=questions)


def page_of(document: Document) -> Page:
    """Return a stored document as the page it was made of."""
    return Page(
        content=document.content,
        title=document.title,
        source=document.source,
        crumbs=document.crumbs,
        description=document.description,
        summary=document.summary,
        keypoints=document.keypoints,
        keywords=document.keywords,
        audience=document.audience,
        language=document.language,
        edition=document.edition,
        last_updated=document.last_updated,
        starts=[(line, page) for line, page in document.starts],
    )
