"""Importing: an archive into a collection, a document at a time."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from django.db import transaction

from knowledge import postings
from knowledge.archive import records
from knowledge.archive.contents import Entry, Inventory, State, entries, examine
from knowledge.archive.errors import CollectionDiffers, UnusableArchive
from knowledge.archive.opening import Archive, opened, validated
from knowledge.archive.records import CollectionRecord, QuestionRecord
from knowledge.archive.rows import embedded, put
from knowledge.embedding import models
from knowledge.errors import InvalidCollectionName
from knowledge.ingestion.removal import delete
from knowledge.models import (
    COLLECTION_NAME,
    Calibration,
    Collection,
    DocumentVector,
    GoldenQuestion,
)
from knowledge.names import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.search import indexes

Watch = Callable[[str, int, int], None]  # told what is under way, how much of it, of how much


@dataclass
class Restored:
    """What an import did: documents by what became of them."""

    collection: str
    new: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0  # written
    embedded: int = 0  # chunks the archive held no vectors of
    questions: int = 0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)


def restore(
    path: Path, *, name: str = "", replace: bool = False, watch: Watch | None = None
) -> Restored:
    """Import the archive into the collection `name`, or the one it was exported from.

    Everything in it is checked before anything is written. An import that was interrupted is
    continued by the next: documents that are there in the same version are left alone. Vectors
    come from the archive; only those of the collection's model that it lacks are computed.

    Raises UnusableArchive, InvalidCollectionName, EmbeddingUnavailable, and CollectionDiffers when
    the collection holds something else, unless `replace` makes it what the archive says.
    """
    begin = perf_counter()
    tell = watch or (lambda stage, done, total: None)
    with opened(path) as archive:
        archive.check(lambda done, total: tell("checking", done, total))
        record = validated(CollectionRecord, archive.start(records.COLLECTION), records.COLLECTION)
        inventory = examine(archive, lambda done, total: tell("reading", done, total))
        refuse_dimensions(archive)
        collection = target(record, name or record.name)
        there = states_of(collection)
        if not replace:
            refuse_difference(collection, there, inventory)
        restored = Restoring(archive, collection, there, tell).run(inventory)
        restored.removed = remove(collection, there, inventory) if replace else 0
        restored.questions = put_knowledge(archive, record, collection, replace=replace)
        index(archive, collection)
    postings.refresh(collection.pk)
    restored.seconds = round(perf_counter() - begin, 2)
    return restored


def refuse_dimensions(archive: Archive) -> None:
    """Raise UnusableArchive for vectors that could not be compared with those of this database."""
    for model in archive.manifest.models:
        there = DocumentVector.objects.filter(model=model.name).values_list("embedding", flat=True)
        known = LOCAL_DIMENSIONS if model.name == LOCAL_MODEL else len(there.first() or [])
        if known and known != model.dimensions:
            raise UnusableArchive(
                f"Its vectors of {model.name} have {model.dimensions} dimensions, and here that "
                f"model's have {known}."
            )


def index(archive: Archive, collection: Collection) -> None:
    """Have the vectors that are searched indexed. Outside a transaction."""
    model = collection.embedding_model
    known = {each.name: each.dimensions for each in archive.manifest.models}
    if DocumentVector.objects.filter(collection=collection, model=model).exists():
        indexes.ensure(model, known.get(model) or models.named(model).dimensions)


def target(record: CollectionRecord, name: str) -> Collection:
    """Return the collection, made when missing. Raises InvalidCollectionName."""
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    described = {
        "title": record.title,
        "description": record.description,
        "embedding_model": record.embedding_model,
    }
    return Collection.objects.get_or_create(name=name, defaults=described)[0]


def states_of(collection: Collection) -> dict[str, State]:
    """Return source → state of what is there."""
    found = collection.documents.order_by().values_list("source", "version", "sha1")
    return {source: (version, sha1) for source, version, sha1 in found.iterator()}


def refuse_difference(
    collection: Collection, there: dict[str, State], inventory: Inventory
) -> None:
    """Raise CollectionDiffers unless all that is there is in the archive, too."""
    other = [source for source, state in there.items() if inventory.states.get(source) != state]
    if other:
        raise CollectionDiffers(
            f"There is a collection {collection.name!r} already, and {len(other):,} of its "
            f"documents are not in the archive or other versions, such as {min(other)!r}. Import "
            "it under another name (--collection), or with --replace, which makes the collection "
            "what the archive says."
        )


@dataclass
class Restoring:
    """One import under way."""

    archive: Archive
    collection: Collection
    there: dict[str, State]
    tell: Watch

    def run(self, inventory: Inventory) -> Restored:
        """Write what is not there yet. Raises EmbeddingUnavailable."""
        restored = Restored(self.collection.name)
        restored.remarks = list(self.remarks(inventory))
        total = len(inventory.states)
        for done, entry in enumerate(entries(self.archive), start=1):
            source = entry.document.source
            if self.there.get(source) == entry.state:
                restored.unchanged += 1
            else:
                full = self.complete(entry)
                put(self.collection, full)
                restored.chunks += len(entry.document.chunks)
                restored.embedded += len(entry.document.chunks) if full is not entry else 0
                restored.new += source not in self.there
                restored.replaced += source in self.there
            self.tell("importing", done, total)
        return restored

    def complete(self, entry: Entry) -> Entry:
        """Return the document with vectors of the collection's model."""
        model = self.collection.embedding_model
        if model in entry.vectors or not entry.document.chunks:
            return entry
        vectors = embedded(entry.document, models.named(model))
        return Entry(entry.document, entry.versions, entry.vectors | {model: vectors})

    def remarks(self, inventory: Inventory) -> list[str]:
        """Return what whoever imports it should know."""
        model = self.collection.embedding_model
        lacking = len(inventory.states) - inventory.embedded[model]
        if not lacking:
            return []
        return [
            f"The archive holds no vectors of {model} for {lacking:,} documents: "
            "these were embedded."
        ]


def remove(collection: Collection, there: dict[str, State], inventory: Inventory) -> int:
    """Delete what the archive does not hold, with a receipt; return how many documents."""
    gone = there.keys() - inventory.states.keys()
    found = collection.documents.filter(source__in=gone).select_related("collection")
    documents = list(found.only("source", "title", "version", "collection"))
    if documents:
        delete(documents, reason="not in the archive that replaced the collection")
    return len(documents)


def put_knowledge(
    archive: Archive, record: CollectionRecord, collection: Collection, *, replace: bool
) -> int:
    """Write thresholds and golden questions; return how many questions there are now.

    What somebody set here since is kept, unless `replace`.
    """
    with transaction.atomic():
        if replace:
            collection.calibrations.all().delete()
            collection.golden_questions.all().delete()
            Collection.objects.filter(pk=collection.pk).update(
                title=record.title, description=record.description
            )
        Calibration.objects.bulk_create(
            (
                Calibration(collection=collection, **each.model_dump())
                for each in record.calibrations
            ),
            ignore_conflicts=True,
        )
        GoldenQuestion.objects.bulk_create(
            (
                GoldenQuestion(collection=collection, **each.model_dump())
                for each in archive.lines(records.QUESTIONS, QuestionRecord)
            ),
            batch_size=1000,
            ignore_conflicts=True,
        )
    return collection.golden_questions.count()
