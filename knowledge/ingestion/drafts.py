"""Drafts: a page made ready to be stored, everything but its vectors and what models say of it."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha1

from knowledge import chunking, enrichment, model_calls
from knowledge.enrichment import Enrichment
from knowledge.errors import Unreadable
from knowledge.graph import Graph, extract
from knowledge.ingestion.edits import NO_EDITS, Edits, edited, own_words, standing
from knowledge.models import Document
from knowledge.parsing import Page
from knowledge.preparation import Prepared, prepare

# PostgreSQL's text search configurations of version 15, by language tag. What is not listed is
# indexed word by word, without stems.
CONFIGS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip

# Of a page, its origin and the folders it lies in.
Prepare = Callable[[Page, str, Sequence[str]], Prepared]


@dataclass(frozen=True)
class Sheet:
    """A page, where it comes from, and the digest that tells whether it changed."""

    origin: str
    source: str
    sha1: str
    page: Page
    # What the file says of itself, where the page was made of what is stored.
    stated: Mapping[str, str] | None = None

    @property
    def own(self) -> Mapping[str, str]:
        """What the file says of itself in the fields that can be edited."""
        return self.stated or own_words(self.page)


@dataclass(frozen=True)
class Draft:
    """A document as it will be stored, with its chunks."""

    sheet: Sheet
    page: Page  # the sheet's, with what it left unsaid filled in
    parts: Sequence[chunking.Part]
    headings: Sequence[str]
    former: str = ""  # source of the document it goes on with, whose file is gone
    graph: Graph = field(default_factory=Graph)  # what it states
    edits: Edits = field(default_factory=dict)  # of staff, that hold over what the file says

    @property
    def warnings(self) -> list[str]:
        """What did not work on the way, for who ingests it."""
        return [*self.page.warnings, *self.graph.warnings]

    @property
    def sources(self) -> list[str]:
        """The sources of the document it replaces, should there be one."""
        return [self.sheet.source, self.former] if self.former else [self.sheet.source]

    @property
    def config(self) -> str:
        """The text search configuration of its language."""
        return CONFIGS.get(self.page.language.split("-")[0], "simple")

    def embedding_texts(self) -> list[str]:
        """Return what the embedding model is to see, chunk by chunk."""
        return [
            chunking.embedding_text(self.page.title, each.section, each.text) for each in self.parts
        ]


def digest(content: bytes) -> str:
    """Return the SHA-1 of the content, which tells change and protects nothing."""
    return sha1(content, usedforsecurity=False).hexdigest()


def sheets(origin: str, sha1: str, pages: Sequence[Page]) -> list[Sheet]:
    """Return the pages of a file as sheets.

    A file that is one page is known by the digest of its bytes, `sha1`; of several in one file,
    and where that is empty, each is known by a digest of its own, so that a change to one leaves
    the others alone.
    """
    alone = len(pages) == 1
    return [
        Sheet(
            origin,
            page.source or (origin if alone else f"{origin}#{number}"),
            sha1 if alone and sha1 else digest(json.dumps(asdict(page), default=str).encode()),
            page,
        )
        for number, page in enumerate(pages, start=1)
    ]


def draft(
    sheet: Sheet,
    folders: Sequence[str],
    prepare: Prepare = prepare,
    former: str = "",
    edits: Edits = NO_EDITS,
) -> Draft:
    """Return the document with its chunks and what rules can say of it. Raises Unreadable.

    Chunks go by the keywords that rules find: whoever describes the document later leaves their
    texts, and so their vectors, as they are. `prepare` is asked for them, and `former` the source
    of the document it goes on with. `edits` are those of that document.
    """
    limit = Document._meta.get_field("source").max_length or 0
    if max(len(sheet.source), len(sheet.origin)) > limit:
        raise Unreadable(f"its path or URL is longer than {limit} characters")
    holding = standing(edits, sheet.own)
    prepared = prepare(edited(sheet.page, holding), sheet.origin, folders)
    if not prepared.parts:
        raise Unreadable("there is too little text in it to be found by")
    page, parts = prepared.page, prepared.parts
    return Draft(sheet, page, parts, prepared.headings, former, edits=holding)


def describe_by_models(draft: Draft, questions: Collection[str]) -> Draft:
    """Return the draft as models describe it, if that is a question here. It takes its time."""
    if model_calls.DESCRIPTION not in questions:
        return draft
    page = draft.page
    description = Enrichment(**{each.name: getattr(page, each.name) for each in fields(Enrichment)})
    # What the page says itself, under the names it was given.
    file_page = replace(
        edited(draft.sheet.page, draft.edits),
        title=page.title,
        audience=page.audience,
        crumbs=page.crumbs,
    )
    return replace(draft, page=replace(page, **vars(enrichment.describe(file_page, description))))


def draw_graph(draft: Draft) -> Draft:
    """Return the draft with the graph that models draw of it, where they do. It takes its time."""
    return replace(draft, graph=extract(draft.page, draft.parts))
