"""Storing: a draft into the database, whole or not at all."""

from collections.abc import Sequence

import numpy as np
from django.contrib.postgres.search import SearchVector
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.expressions import Combinable
from django.utils.timezone import now
from numpy.typing import NDArray

from knowledge import chunking, enrichment
from knowledge.embedding import MODEL, count_tokens
from knowledge.ingestion.drafts import Draft
from knowledge.ingestion.report import Outcome
from knowledge.models import Chunk, Collection, Document, Vector, document_id

# What a page and a document call alike.
DESCRIBED = (
    "title",
    "crumbs",
    "description",
    "content",
    "summary",
    "keypoints",
    "keywords",
    "audience",
    "language",
    "last_updated",
)


def store(
    collection: Collection, draft: Draft, vectors: NDArray[np.float32], *, force: bool = False
) -> Outcome:
    """Write the document with its chunks and their vectors in one transaction.

    Somebody who stored the same bytes meanwhile has done our work: "unchanged", unless `force`.
    """
    source = draft.sheet.source
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two ingestions of one document take turns, also when neither has a row to lock yet.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
                [f"document {collection.pk} {source}"],
            )
        document = Document.objects.filter(collection=collection, source=source).first()
        if document and document.sha1 == draft.sheet.sha1 and not force:
            return "unchanged"
        if document:
            document.version += 1
            document.chunks.all().delete()
        else:
            document = Document(
                id=document_id(collection.name, source), collection=collection, source=source
            )
        describe(document, draft)
        document.save()
        write_chunks(document, draft, vectors)
        return "changed" if document.version > 1 else "new"


def describe(document: Document, draft: Draft) -> None:
    """Put what the draft says about itself into the document's fields."""
    page = draft.page
    for name in DESCRIBED:
        setattr(document, name, getattr(page, name))
    document.origin = draft.sheet.origin
    document.sha1 = draft.sheet.sha1
    document.config = draft.config
    document.updated = now()


def write_chunks(document: Document, draft: Draft, vectors: NDArray[np.float32]) -> None:
    """Insert the chunks and their vectors."""
    headings = enrichment.headings(document.content)
    candidates = [
        *document.keywords,
        *enrichment.words(" ".join([document.title, *headings, document.summary])),
    ]
    chunks = Chunk.objects.bulk_create(
        Chunk(
            document=document,
            number=number,
            section=list(part.section),
            text=part.text,
            keywords=(keywords := enrichment.chunk_keywords(part.text, part.section, candidates)),
            sha1=part.sha1,
            tokens=count_tokens(text),
            search=search_vector(document, part, keywords),
        )
        for number, (part, text) in enumerate(
            zip(draft.parts, draft.embedded(), strict=True), start=1
        )
    )
    Vector.objects.bulk_create(
        Vector(chunk=chunk, model=MODEL, embedding=vector)
        for chunk, vector in zip(chunks, vectors, strict=True)
    )


def search_vector(document: Document, part: chunking.Part, keywords: Sequence[str]) -> Combinable:
    """Return the expression that indexes a chunk by words.

    Every chunk carries its title (weight A) and headings (B): words that only they hold are what
    questions are asked with.
    """

    def weighted(text: str, weight: str) -> SearchVector:
        return SearchVector(Value(text), config=document.config, weight=weight)

    return (
        weighted(document.title, "A")
        + weighted(" ".join([*part.section, *document.crumbs]), "B")
        + weighted(" ".join(keywords), "C")
        + weighted(part.text, "D")
    )
