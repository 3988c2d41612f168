"""Restore: an archive into a collection, a document at a time."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Model
from pgvector import HalfVector

from knowledge import changes, graph
from knowledge.archive import contents
from knowledge.archive.container import Archive, Progress, opened
from knowledge.archive.contents import TABLES, Entry, Level, UnusableArchive
from knowledge.embedding import registry
from knowledge.errors import InvalidCollectionName, KnowledgeError
from knowledge.identifiers import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.ingestion.backfill import fill
from knowledge.ingestion.removal import delete
from knowledge.ingestion.store import document_at, free_id, lock_collection
from knowledge.models import (
    COLLECTION_NAME,
    Calibration,
    Chunk,
    Collection,
    Copy,
    Document,
    DocumentVector,
    GoldenQuestion,
    Relation,
    Section,
    Version,
)
from knowledge.search import postings, vector_indexes

BATCH = 1000  # rows of one INSERT

Table = TypeVar("Table", bound=Model)
State = tuple[int, str]  # a document's version, and the SHA-1 of the bytes it was read from


class CollectionDiffers(KnowledgeError):
    """The collection that is there holds something else than the archive."""


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
    path: Path, *, name: str = "", replace: bool = False, watch: Progress | None = None
) -> Restored:
    """Import the archive into the collection `name`, or the one it was exported from.

    Everything in it is checked before anything is written. An import that was interrupted is
    continued by the next: documents that are there in the same version are left alone. Vectors
    come from the archive; only those of the collection's model that it lacks are computed, when
    all documents are there.

    Raises UnusableArchive, InvalidCollectionName, EmbeddingUnavailable, and CollectionDiffers when
    the collection holds something else, unless `replace` makes it what the archive says.
    """
    begin = perf_counter()
    progress = watch or (lambda stage, done, total: None)
    with opened(path) as archive:
        archive.check(progress)
        record = archive.record(contents.Collection, contents.COLLECTION)
        states, embedded = examine(archive, record, progress)
        refuse_dimensions(archive)
        collection = target(record, name or record.name)
        rows = collection.documents.order_by().values_list("source", "version", "sha1")
        present = {source: (version, sha1) for source, version, sha1 in rows.iterator()}
        if not replace:
            refuse_difference(collection, present, states)
        restored = put_documents(archive, collection, present, progress)
        if replace:
            restored.removed = remove(collection, present.keys() - states.keys())
        restored.questions = put_knowledge(archive, record, collection, replace=replace)
        if lacking := len(states) - embedded[collection.embedding_model]:
            model = registry.named(collection.embedding_model)
            restored.embedded = fill(collection, model, partial(progress, "embedding"))
            restored.remarks.append(
                f"The archive holds no vectors of {collection.embedding_model} for {lacking:,} "
                "documents: these were embedded."
            )
        index(archive, collection)
    postings.refresh(collection.pk)
    restored.seconds = round(perf_counter() - begin, 2)
    return restored


def examine(
    archive: Archive, record: contents.Collection, progress: Progress
) -> tuple[dict[str, State], Counter[str]]:
    """Go through everything once. Raises UnusableArchive.

    Returns source → state of the documents, and model → how many it has vectors of.
    """
    states, embedded = dict[str, State](), Counter[str]()
    counts = Counter(calibrations=len(record.calibrations))
    copies = set[str]()
    total = archive.manifest.counts.get("documents", 0)
    for done, entry in enumerate(archive.entries(), start=1):
        progress("reading", done, total)
        document = entry.document
        sources = [copy.source for copy in document.copies]
        versions = {version.number for version in entry.versions}
        if document.source in states or len(versions) < len(entry.versions):
            raise UnusableArchive(f"It holds {document.source!r} or a version of it twice.")
        if len({*sources}) < len(sources) or not copies.isdisjoint(sources):
            raise UnusableArchive(f"It holds a copy of {document.source!r} twice.")
        copies.update(sources)
        states[document.source] = document.version, document.sha1
        embedded.update(entry.vectors.keys())
        counts.update(entry.counts)
    counts["questions"] = sum(1 for _ in archive.lines(contents.QUESTIONS, contents.Question))
    if counts != Counter(archive.manifest.counts):
        raise UnusableArchive("It holds more or less than its manifest says.")
    return states, embedded


def refuse_dimensions(archive: Archive) -> None:
    """Raise UnusableArchive for vectors that could not be compared with those of this database."""
    for model in archive.manifest.models:
        stored = DocumentVector.objects.filter(model=model.name).values_list("embedding", flat=True)
        known = LOCAL_DIMENSIONS if model.name == LOCAL_MODEL else len(stored.first() or [])
        if known and known != model.dimensions:
            raise UnusableArchive(
                f"Its vectors of {model.name} have {model.dimensions} dimensions, and here that "
                f"model's have {known}."
            )


def target(record: contents.Collection, name: str) -> Collection:
    """Return the collection, made when missing. Raises InvalidCollectionName."""
    if not re.match(COLLECTION_NAME, name):
        raise InvalidCollectionName(name)
    described = record.model_dump(include={"title", "description", "embedding_model"})
    return Collection.objects.get_or_create(name=name, defaults=described)[0]


def refuse_difference(
    collection: Collection, present: Mapping[str, State], states: Mapping[str, State]
) -> None:
    """Raise CollectionDiffers unless all that is there is in the archive, too."""
    other = [source for source, state in present.items() if states.get(source) != state]
    if other:
        raise CollectionDiffers(
            f"There is a collection {collection.name!r} already, and {len(other):,} of its "
            f"documents are not in the archive or other versions, such as {min(other)!r}. Import "
            "it under another name (--collection), or with --replace, which makes the collection "
            "what the archive says."
        )


def put_documents(
    archive: Archive, collection: Collection, present: Mapping[str, State], progress: Progress
) -> Restored:
    """Write the documents that are not there yet."""
    restored = Restored(collection.name)
    total = archive.manifest.counts.get("documents", 0)
    for done, entry in enumerate(archive.entries(), start=1):
        document = entry.document
        if present.get(document.source) == (document.version, document.sha1):
            restored.unchanged += 1
        else:
            put(collection, entry)
            restored.chunks += len(document.chunks)
            restored.new += document.source not in present
            restored.replaced += document.source in present
        progress("importing", done, total)
    return restored


def put(collection: Collection, entry: Entry) -> None:
    """Write a document with all that belongs to it, in place of one of the same source."""
    record = entry.document
    with transaction.atomic():
        lock_collection(collection)
        former = document_at(collection, record.source)
        # Answers cite it by its id.
        identity = former.pk if former else free_id(collection, record.source)
        named_before = graph.entities_named_by([identity])
        if former:
            former.delete()
            changes.notify([identity])
        sources = [record.source, *(copy.source for copy in record.copies)]
        collection.copies.filter(source__in=sources).delete()
        fields = record.model_dump(include=contents.DOCUMENT_FIELDS)
        document = Document.objects.create(id=identity, collection=collection, **fields)
        put_parts(document, entry)
        graph.prune(named_before)
        postings.write(document)


def put_parts(document: Document, entry: Entry) -> None:
    """Insert what belongs to a document, in the caller's transaction."""
    record, collection = entry.document, document.collection
    insert(Version, entry.versions, document=document)
    insert(Copy, record.copies, document=document, collection=collection)
    sections = insert(Section, record.sections, document=document)
    by_number = {section.number: section for section in sections}
    chunks = Chunk.objects.bulk_create(
        Chunk(document=document, **chunk.model_dump() | {"section": by_number[chunk.section]})
        for chunk in record.chunks
    )
    parts: dict[Level, Sequence[Any]] = {
        "documents": [document], "sections": sections, "chunks": chunks
    }  # fmt: skip
    for model, matrices in entry.vectors.items():
        shared = {"collection": collection, "model": model}
        for level, vectors in matrices.items():
            table, owner = TABLES[level]
            table._default_manager.bulk_create(
                table(embedding=HalfVector(vector), **{owner: part}, **shared)
                for part, vector in zip(parts[level], vectors, strict=True)
            )
    put_statements(document, chunks, record)


def insert(
    table: type[Table],
    records: Iterable[contents.Record],
    *,
    ignore_conflicts: bool = False,
    **fields: Any,
) -> list[Table]:
    """Insert a row per record, with these fields beside or instead of its own."""
    rows = (table(**record.model_dump() | fields) for record in records)
    return table._default_manager.bulk_create(
        rows, batch_size=BATCH, ignore_conflicts=ignore_conflicts
    )


def put_statements(document: Document, chunks: Iterable[Chunk], record: contents.Document) -> None:
    """Insert what the document states of entities, those of the collection where it has them.

    By place and not by name as `knowledge.graph.write` has it: two kinds of things may be called
    the same.
    """
    entities = [(entity.name, entity.kind) for entity in record.entities]
    ids = graph.entity_ids(document.collection, entities)
    called = zip(ids, record.entities, strict=True)
    graph.write_names(document, [(pk, name) for pk, entity in called for name in entity.names])
    by_number = {chunk.number: chunk for chunk in chunks}
    Relation.objects.bulk_create(
        (
            Relation(
                document=document,
                chunk=by_number[relation.chunk],
                subject_id=ids[relation.subject],
                object_id=ids[relation.object],
                **relation.model_dump(exclude={"chunk", "subject", "object"}),
            )
            for relation in record.relations
        ),
        ignore_conflicts=True,
    )


def remove(collection: Collection, sources: Iterable[str]) -> int:
    """Delete what the archive does not hold, with a receipt; return how many documents."""
    rows = collection.documents.filter(source__in=sources).select_related("collection")
    documents = list(rows.only("source", "title", "version", "collection"))
    if documents:
        delete(documents, reason="not in the archive that replaced the collection")
    return len(documents)


def put_knowledge(
    archive: Archive, record: contents.Collection, collection: Collection, *, replace: bool
) -> int:
    """Write thresholds and golden questions; return how many questions there are now.

    What somebody set here since is kept, unless `replace`.
    """
    with transaction.atomic():
        if replace:
            collection.calibrations.all().delete()
            collection.golden_questions.all().delete()
            described = record.model_dump(include={"title", "description"})
            Collection.objects.filter(pk=collection.pk).update(**described)
        questions = archive.lines(contents.QUESTIONS, contents.Question)
        insert(Calibration, record.calibrations, collection=collection, ignore_conflicts=True)
        insert(GoldenQuestion, questions, collection=collection, ignore_conflicts=True)
    return collection.golden_questions.count()


def index(archive: Archive, collection: Collection) -> None:
    """Have the vectors that are searched indexed. Outside a transaction."""
    model = collection.embedding_model
    dimensions = {each.name: each.dimensions for each in archive.manifest.models}
    if DocumentVector.objects.filter(collection=collection, model=model).exists():
        vector_indexes.ensure(model, dimensions.get(model) or registry.named(model).dimensions)
