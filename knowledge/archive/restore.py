"""Importing: an archive into a collection, a document at a time."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from django.db import transaction
from numpy.typing import NDArray
from pgvector import HalfVector

from knowledge import changes, chunking, graph
from knowledge.archive import archive_format
from knowledge.archive.archive_format import (
    CollectionDiffers,
    CollectionRecord,
    Described,
    DocumentRecord,
    QuestionRecord,
    UnusableArchive,
    restate,
)
from knowledge.archive.container import (
    Archive,
    Entry,
    Inventory,
    Matrices,
    State,
    entries,
    examine,
    opened,
    validated,
)
from knowledge.embedding import Embedder, registry
from knowledge.errors import InvalidCollectionName
from knowledge.identifiers import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.ingestion.removal import delete
from knowledge.ingestion.store import document_at, free_id, lock_collection
from knowledge.models import (
    COLLECTION_NAME,
    Calibration,
    Chunk,
    ChunkVector,
    Collection,
    Copy,
    Document,
    DocumentVector,
    GoldenQuestion,
    Section,
    SectionVector,
    Version,
)
from knowledge.search import postings, vector_indexes


def put(collection: Collection, entry: Entry) -> None:
    """Write a document with all that belongs to it, in place of one of the same source."""
    record = entry.document
    with transaction.atomic():
        lock_collection(collection)
        former = document_at(collection, record.source)
        # Answers cite it by its id.
        identity = former.pk if former else free_id(collection, record.source)
        before = graph.touched([identity])
        if former:
            former.delete()
            changes.notify([identity])
        sources = [record.source, *(copy.source for copy in record.copies)]
        collection.copies.filter(source__in=sources).delete()
        document = Document.objects.create(
            id=identity,
            collection=collection,
            **{name: getattr(record, name) for name in Described.model_fields},
        )
        put_history(document, entry)
        sections = Section.objects.bulk_create(
            Section(document=document, **each.model_dump()) for each in record.sections
        )
        by_number = {section.number: section for section in sections}
        chunks = Chunk.objects.bulk_create(
            Chunk(
                document=document,
                section=by_number[each.section],
                **each.model_dump(exclude={"section"}),
            )
            for each in record.chunks
        )
        for model, vectors in entry.vectors.items():
            put_vectors(document, sections, chunks, model, vectors)
        restate(document, chunks, record)
        graph.prune(before)
        postings.write(document)


def put_history(document: Document, entry: Entry) -> None:
    """Insert what the document said before, and where else it lies."""
    Version.objects.bulk_create(
        Version(document=document, **each.model_dump(exclude={"document"}))
        for each in entry.versions
    )
    Copy.objects.bulk_create(
        Copy(document=document, collection=document.collection, **each.model_dump())
        for each in entry.document.copies
    )


def put_vectors(
    document: Document,
    sections: list[Section],
    chunks: list[Chunk],
    model: str,
    vectors: Matrices,
) -> None:
    """Insert the vectors of one model."""
    place = {"collection": document.collection, "model": model}
    DocumentVector.objects.create(
        document=document, embedding=HalfVector(vectors["documents"][0]), **place
    )
    SectionVector.objects.bulk_create(
        SectionVector(section=section, embedding=HalfVector(vector), **place)
        for section, vector in zip(sections, vectors["sections"], strict=True)
    )
    ChunkVector.objects.bulk_create(
        ChunkVector(chunk=chunk, embedding=HalfVector(vector), **place)
        for chunk, vector in zip(chunks, vectors["chunks"], strict=True)
    )


def embedded(record: DocumentRecord, embedder: Embedder) -> Matrices:
    """Return vectors of a document that came without. Raises EmbeddingUnavailable."""
    paths = {section.number: section.path for section in record.sections}
    texts = [
        chunking.embedded(record.title, paths[chunk.section], chunk.text) for chunk in record.chunks
    ]
    chunks = embedder.encode(texts)
    everything = list(range(len(chunks)))
    within = [
        [row for row, chunk in enumerate(record.chunks) if chunk.section == section.number]
        or everything  # a section that is all heading
        for section in record.sections
    ]
    return {
        "documents": means(chunks, [everything]),
        "sections": means(chunks, within),
        "chunks": chunks.astype(np.float16),
    }


def means(vectors: NDArray[np.float32], groups: list[list[int]]) -> NDArray[np.float16]:
    """Return the unit vector in the direction of the mean of each group of rows."""
    centres = np.stack([vectors[rows].mean(axis=0) for rows in groups])
    lengths = np.linalg.norm(centres, axis=1, keepdims=True)
    return (centres / np.where(lengths > 0, lengths, 1.0)).astype(np.float16)


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
        record = validated(
            CollectionRecord, archive.start(archive_format.COLLECTION), archive_format.COLLECTION
        )
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
        vector_indexes.ensure(model, known.get(model) or registry.named(model).dimensions)


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
        vectors = embedded(entry.document, registry.named(model))
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
                for each in archive.lines(archive_format.QUESTIONS, QuestionRecord)
            ),
            batch_size=1000,
            ignore_conflicts=True,
        )
    return collection.golden_questions.count()
