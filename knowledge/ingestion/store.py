"""Store: a draft into the database, whole or not at all."""

from collections.abc import Mapping, Sequence

import numpy as np
from django.conf import settings
from django.db import connection
from django.utils.timezone import now
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge import changes, enrichment, graph
from knowledge.errors import Unreadable
from knowledge.ingestion.drafts import Draft, Sheet
from knowledge.ingestion.report import Outcome
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    Copy,
    Document,
    DocumentVector,
    Section,
    SectionVector,
    Version,
    document_id,
)
from knowledge.search import postings
from knowledge.tokens import count_tokens

# What a page and a document call alike.
PAGE_FIELDS = (
    "title",
    "crumbs",
    "description",
    "content",
    "summary",
    "keypoints",
    "keywords",
    "audience",
    "language",
    "edition",
    "last_updated",
    "starts",
)
REVISE = """
INSERT INTO knowledge_revision (collection_id, number) VALUES (%s, 1)
ON CONFLICT (collection_id) DO UPDATE SET number = knowledge_revision.number + 1
"""


def store(
    collection: Collection, draft: Draft, vectors: NDArray[np.float32], *, force: bool = False
) -> Outcome:
    """Write the document with its chunks and their vectors, in the caller's transaction.

    Somebody who stored the same bytes meanwhile has done our work: "unchanged", unless `force`,
    or "duplicate" when it was under another source.
    """
    sheet = draft.sheet
    lock_collection(collection)
    document = document_at(collection, sheet.source)
    if document and document.sha1 == sheet.sha1 and not force:
        return "unchanged"
    if document is None and draft.former:
        document = document_at(collection, draft.former)
    outcome: Outcome = "changed" if document else "new"
    if document:
        clear_former(document, draft)
    elif same_bytes(collection, sheet):
        record_copy(collection, sheet)
        return "duplicate"
    else:
        document = Document(id=free_id(collection, sheet.source))
    document.collection = collection  # with the model that the vectors are of
    fill_fields(document, draft)
    # Django would try to UPDATE first, as the id is given.
    document.save(force_insert=outcome == "new")
    Copy.objects.filter(collection=collection, source=sheet.source).delete()
    write_chunks(document, draft, vectors)
    if outcome == "changed":
        changes.notify([document.pk])
    return outcome


def lock_collection(collection: Collection) -> None:
    """Let nobody else store in the collection until this transaction ends.

    Which bytes are stored, and under which source, can only be told while nobody changes it. From
    then on nothing counts that was found in it before: others wait for the row that says so.
    """
    with connection.cursor() as cursor:
        cursor.execute(REVISE, [collection.pk])


def document_at(collection: Collection, source: str) -> Document | None:
    """Return the document of that source."""
    return Document.objects.filter(collection=collection, source=source).first()


def same_bytes(collection: Collection, sheet: Sheet) -> Document | None:
    """Return a document of another source that was made of the same bytes."""
    documents = Document.objects.filter(collection=collection, sha1=sheet.sha1)
    return documents.exclude(source=sheet.source).order_by("created").first()


def record_copy(collection: Collection, sheet: Sheet) -> Document:
    """Note that the sheet is a copy of a document, which is returned. Raises Unreadable."""
    document = same_bytes(collection, sheet)
    if document is None:
        raise Unreadable("the document it is a copy of has just changed: try it again")
    Copy.objects.update_or_create(
        collection=collection,
        source=sheet.source,
        defaults={"document": document, "origin": sheet.origin, "sha1": sheet.sha1},
    )
    return document


def record_origin(collection: Collection, sheet: Sheet) -> None:
    """Note that a document now comes from another file."""
    documents = Document.objects.filter(collection=collection, source=sheet.source)
    documents.update(origin=sheet.origin)


def move_to_copies(documents: Sequence[Document], homes: Mapping[str, Copy]) -> None:
    """Let documents go on where a copy of each lies, with their ids, versions and chunks.

    Answers that cite them stay true. `homes` are the copies by the documents' ids.
    """
    for document in documents:
        # Aside first: one may move to where another still is.
        document.source = f"moving {document.pk}"
        document.save(update_fields=["source"])
    for document in documents:
        home = homes[document.pk]
        document.source, document.origin = home.source, home.origin
        document.save(update_fields=["source", "origin"])
        home.delete()


def free_id(collection: Collection, source: str) -> str:
    """Return the id of a new document: another than usual when one that moved away has that."""
    attempt, identity = 0, document_id(collection.name, source)
    while Document.objects.filter(pk=identity).exists():
        attempt += 1
        identity = document_id(collection.name, f"{source}\0{attempt}")
    return identity


def clear_former(document: Document, draft: Draft) -> None:
    """Make room for the draft. What the document said is kept when the draft says otherwise."""
    said = (document.title, document.content, document.edition)
    if said != (draft.page.title, draft.page.content, draft.page.edition):
        keep_version(document)
        document.version += 1
    document.chunks.all().delete()
    document.sections.all().delete()
    document.vectors.all().delete()


def keep_version(document: Document) -> None:
    """Keep what the document says as a version; the oldest go when they are too many."""
    Version.objects.create(
        document=document,
        number=document.version,
        title=document.title,
        edition=document.edition,
        content=document.content,
        sha1=document.sha1,
        created=document.updated,
    )
    oldest = document.version - settings.KEEP_VERSIONS
    old_versions = document.versions.filter(number__lte=oldest)
    digests = [changes.digest(text) for text in old_versions.values_list("content", flat=True)]
    if digests:
        changes.notify([], digests)
        old_versions.delete()


def fill_fields(document: Document, draft: Draft) -> None:
    """Put what the draft says about itself into the document's fields."""
    page = draft.page
    for name in PAGE_FIELDS:
        setattr(document, name, getattr(page, name))
    document.source = draft.sheet.source
    document.origin = draft.sheet.origin
    document.sha1 = draft.sheet.sha1
    document.config = draft.config
    # What is stored of a document knows no more of its file than was noted before.
    known = draft.sheet.stated
    document.stated = dict(draft.sheet.own if known is None else known)
    document.edits = dict(draft.edits)
    document.updated = now()


def write_chunks(document: Document, draft: Draft, vectors: NDArray[np.float32]) -> None:
    """Insert the chunks and their vectors."""
    about = " ".join([document.title, *draft.headings, document.summary])
    words = dict.fromkeys([*document.keywords, *enrichment.words(about)])
    places = {word: place for place, word in enumerate(words)}
    sections = write_sections(document, draft)
    chunks = Chunk.objects.bulk_create(
        Chunk(
            document=document,
            number=number,
            section=sections[part.section],
            text=part.text,
            page=part.page,
            keywords=enrichment.chunk_keywords(part.text, part.section, places),
            sha1=part.sha1,
            tokens=count_tokens(text),
        )
        for number, (part, text) in enumerate(
            zip(draft.parts, draft.embedding_texts(), strict=True), start=1
        )
    )
    write_vectors(document, chunks, vectors)
    postings.write(document)
    graph.write(document, chunks, draft.graph)


def write_sections(document: Document, draft: Draft) -> dict[tuple[str, ...], Section]:
    """Insert a section per heading path, in the order of the text; return them by path."""
    paths = dict.fromkeys(part.section for part in draft.parts)
    sections = Section.objects.bulk_create(
        Section(document=document, number=number, path=list(path))
        for number, path in enumerate(paths, start=1)
    )
    return dict(zip(paths, sections, strict=True))


def write_vectors(
    document: Document, chunks: Sequence[Chunk], vectors: NDArray[np.float32]
) -> None:
    """Insert the vectors of the chunks; a section and the document lie at the mean of theirs."""
    place = {"collection": document.collection, "model": document.collection.embedding_model}
    ChunkVector.objects.bulk_create(
        ChunkVector(chunk=chunk, embedding=HalfVector(vector), **place)
        for chunk, vector in zip(chunks, vectors, strict=True)
    )
    of_section: dict[int, list[int]] = {}
    for row, chunk in enumerate(chunks):
        of_section.setdefault(chunk.section_id, []).append(row)
    SectionVector.objects.bulk_create(
        SectionVector(section_id=section, embedding=mean(vectors[rows]), **place)
        for section, rows in of_section.items()
    )
    DocumentVector.objects.create(document=document, embedding=mean(vectors), **place)


def mean(vectors: NDArray[np.float32]) -> HalfVector:
    """Return the unit vector in the direction of the mean."""
    centre = vectors.mean(axis=0)
    return HalfVector(centre / (np.linalg.norm(centre) or 1.0))
