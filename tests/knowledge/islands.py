"""Islands: a small collection with everything in it that an archive holds."""

import hashlib
from datetime import UTC, date, datetime

import numpy as np
from django.db.models import Model

from knowledge.archive import contents
from knowledge.archive.contents import LEVELS, Entry
from knowledge.archive.restore import put
from knowledge.embedding.local import LOCAL
from knowledge.ingestion.backfill import fill
from knowledge.models import (
    Calibration,
    Chunk,
    ChunkVector,
    Collection,
    Copy,
    Document,
    DocumentVector,
    Entity,
    EntityName,
    GoldenQuestion,
    Posting,
    Relation,
    Section,
    SectionVector,
    Version,
)
from knowledge.search import postings

THEN = datetime(2026, 3, 4, 12, tzinfo=UTC)
PAGES = {
    "ferry.md": ["Places on the night ferry are booked at the harbour.", "A tandem costs 12 €."],
    "fog.md": ["The foghorn sounds every thirty seconds in fog.", "Sailors report a broken one."],
    "quiet.md": ["Between ten and six nobody may play the foghorn.", "The keeper listens."],
    "rooms.md": ["The lighthouse has four rooms for guests.", "The keeper hands out the keys."],
}
OTHER = "wide@acme"


def digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def entities(source: str) -> list[contents.Entity]:
    """Two things of one name, and the page itself."""
    return [
        contents.Entity(name="The island", kind="place", names=["The island", "Skerry"]),
        contents.Entity(name=source, kind="page", names=[source]),
        contents.Entity(name="The Island", kind="organisation", names=["the island"]),
    ]


def relations(last: int) -> list[contents.Relation]:
    """One that a first chunk states, and one that the last does."""
    return [
        contents.Relation(
            subject=2, predicate="publishes", object=1, chunk=1,
            valid_from=date(2024, 3, 1), valid_to=None,
        ),
        contents.Relation(
            subject=1, predicate="is about", object=0, chunk=last, valid_from=None,
            valid_to=date(2026, 3, 4),
        ),
    ]  # fmt: skip


def entry(source: str, texts: list[str], *, version: int = 2) -> Entry:
    """A document of one section to a text, with a copy and a former version."""
    record = contents.Document(
        source=source,
        origin=f"island/{source}",
        title=source.removesuffix(".md").title(),
        crumbs=["Island"],
        description="",
        content="\n\n".join(texts),
        summary=texts[0],
        keypoints=[],
        keywords=["island"],
        version=version,
        edition="2.1",
        last_updated=date(2026, 3, 4),
        audience="guests",
        language="en",
        config="english",
        sha1=digest("".join(texts)),
        created=THEN,
        updated=THEN,
        sections=[
            contents.Section(number=number, path=[f"Part {number}"])
            for number in range(1, len(texts) + 1)
        ],
        chunks=[
            contents.Chunk(
                section=number, number=number, text=text, keywords=["island"], page=number,
                sha1=digest(text), tokens=12,
            )
            for number, text in enumerate(texts, start=1)
        ],
        copies=[
            contents.Copy(
                source=f"copy/{source}", origin=f"copy/{source}", sha1="1" * 40, created=THEN
            )
        ],
        entities=entities(source),
        relations=relations(len(texts)),
        models=[],
    )  # fmt: skip
    former = contents.Version(
        document=source, number=1, edition="2.0", title="Before", content="Before.", sha1="0" * 40,
        created=THEN, replaced=THEN,
    )  # fmt: skip
    return Entry(record, [former], {})


def add(collection: Collection, page: Entry) -> None:
    """Store the document with vectors of the local model, beside those it has."""
    put(collection, page)
    fill(collection, LOCAL)


def noise(page: Entry, model: str, dimensions: int) -> Entry:
    """The document with vectors of another model beside those it has."""
    random = np.random.default_rng(7)
    vectors = {
        level: random.normal(size=(page.document.rows(level), dimensions)).astype(np.float16)
        for level in LEVELS
    }
    return Entry(page.document, page.versions, page.vectors | {model: vectors})


def island() -> Collection:
    """A collection of four documents with vectors of two models, and what is known of it."""
    collection = Collection.objects.create(name="island", title="The island", description="Small.")
    for source, texts in PAGES.items():
        add(collection, noise(entry(source, texts), OTHER, 1024))
    Calibration.objects.create(
        collection=collection, model=LOCAL.name, threshold=0.42, report={"scale": 0.1}
    )
    GoldenQuestion.objects.create(
        collection=collection, question="Who has the keys?", sources=["rooms.md"]
    )
    GoldenQuestion.objects.create(collection=collection, question="Is there snow?", sources=[])
    postings.refresh(collection.pk)
    return collection


ALIKE = {
    "document": ["document__source"],
    "section": ["section__document__source", "section__number"],
    "chunk": ["chunk__document__source", "chunk__number"],
    "entity": ["entity__key", "entity__kind"],
    "subject": ["subject__key", "subject__kind"],
    "object": ["object__key", "object__kind"],
}
KINDS: dict[type[Model], str] = {
    Document: "collection",
    Section: "document__collection",
    Chunk: "document__collection",
    Version: "document__collection",
    Copy: "collection",
    DocumentVector: "collection",
    SectionVector: "collection",
    ChunkVector: "collection",
    Calibration: "collection",
    GoldenQuestion: "collection",
    Posting: "chunk__document__collection",
    Entity: "collection",
    EntityName: "document__collection",
    Relation: "document__collection",
}


def rows(collection: Collection) -> dict[str, list[str]]:
    """Every field of every row of a collection, but for ids."""
    rows_by_table = {}
    for kind, path in KINDS.items():
        fields = [field.name for field in kind._meta.concrete_fields]
        names = [
            name
            for field in fields
            if field not in {"id", "collection"}
            for name in ALIKE.get(field, [field])
        ]
        values = kind._default_manager.filter(**{path: collection}).values_list(*names)
        rows_by_table[kind.__name__] = sorted(map(repr, values))
    return rows_by_table
