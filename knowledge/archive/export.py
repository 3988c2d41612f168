"""Export: a collection into one file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from django.db import connection, transaction
from django.db.models import BinaryField, Func, Model
from django.utils.timezone import now
from numpy.typing import NDArray

from knowledge.archive import archive_format
from knowledge.archive.archive_format import (
    LEVELS,
    CalibrationRecord,
    ChunkRecord,
    CollectionRecord,
    CopyRecord,
    Counts,
    Described,
    DocumentRecord,
    Level,
    Manifest,
    ModelRecord,
    QuestionRecord,
    Record,
    SectionRecord,
    VersionRecord,
    stated,
)
from knowledge.archive.container import HALF, Aside, Entry, Matrices, Matrix, Packer
from knowledge.models import (
    Chunk,
    ChunkVector,
    Collection,
    Copy,
    DocumentVector,
    Section,
    SectionVector,
    Vector,
    Version,
)

DOCUMENTS_AT_ONCE = 8
CHUNK_FIELDS = [name for name in ChunkRecord.model_fields if name != "section"]
VERSION_FIELDS = [name for name in VersionRecord.model_fields if name != "document"]

# Where a level's vectors are, whose they are, and how the document is found from them.
TABLES: dict[Level, tuple[type[Vector], str, str]] = {
    "documents": (DocumentVector, "document", "document"),
    "sections": (SectionVector, "section", "section__document"),
    "chunks": (ChunkVector, "chunk", "chunk__document"),
}


class Sent(Func):
    """A vector in its binary form: its length and 16 bits, then big-endian half precision.

    As text it would become a Python number for each dimension.
    """

    function = "halfvec_send"
    output_field = BinaryField()


def gathered(collection: Collection, dimensions: Mapping[str, int]) -> Iterator[Entry]:
    """Yield the documents with all that belongs to them, by source, one in memory at a time.

    `dimensions` are those of the models to look for; a document has vectors of those that have
    all of it. Rows are read as dictionaries: instances that know each other would stay in memory
    until the garbage collector comes for them.
    """
    names = list(dimensions)
    documents = collection.documents.order_by("source").values("pk", *Described.model_fields)
    for document in documents.iterator(chunk_size=DOCUMENTS_AT_ONCE):
        key = document.pop("pk")
        sections = parts(Section, key, "pk", *SectionRecord.model_fields, order="number")
        chunks = parts(Chunk, key, "pk", "section__number", *CHUNK_FIELDS, order="number")
        copies = parts(Copy, key, *CopyRecord.model_fields, order="source")
        owners: dict[Level, list[Any]] = {
            "documents": [key],
            "sections": [section.pop("pk") for section in sections],
            "chunks": [chunk.pop("pk") for chunk in chunks],
        }
        vectors = vectors_of(key, owners, dimensions)
        entities, relations = stated(key)
        record = DocumentRecord(
            **document,
            sections=[SectionRecord(**each) for each in sections],
            chunks=[ChunkRecord(section=each.pop("section__number"), **each) for each in chunks],
            copies=[CopyRecord(**each) for each in copies],
            entities=entities,
            relations=relations,
            models=[names.index(name) for name in vectors],
        )
        versions = parts(Version, key, *VERSION_FIELDS, order="number")
        former = [VersionRecord(document=record.source, **each) for each in versions]
        yield Entry(record, former, vectors)


def parts(kind: type[Model], document: str, *fields: str, order: str) -> list[dict[str, Any]]:
    """Return what belongs to a document."""
    return list(kind._default_manager.filter(document=document).order_by(order).values(*fields))


def vectors_of(
    document: str, owners: Mapping[Level, Sequence[Any]], dimensions: Mapping[str, int]
) -> dict[str, Matrices]:
    """Return model → vectors, of those of the models that have all of a document."""
    held = {level: held_of(document, level) for level in LEVELS}
    complete = {}
    for name, length in dimensions.items():
        found = {level: stacked(owners[level], name, held[level], length) for level in LEVELS}
        vectors = {level: matrix for level, matrix in found.items() if matrix is not None}
        if len(vectors) == len(LEVELS):
            complete[name] = vectors
    return complete


def held_of(document: str, level: Level) -> dict[tuple[Any, str], bytes]:
    """Return (owner, model) → vector, as `Sent`."""
    kind, owner, path = TABLES[level]
    found = kind._default_manager.filter(**{path: document}).order_by()
    rows = found.values_list(f"{owner}_id", "model", Sent("embedding"))
    return {(key, name): bytes(sent) for key, name, sent in rows}


def stacked(
    owners: Sequence[Any], name: str, held: Mapping[tuple[Any, str], bytes], dimensions: int
) -> NDArray[np.float16] | None:
    """Return a model's vectors (owners, dimensions); None unless every owner has one."""
    found = [held.get((owner, name), b"")[4:] for owner in owners]
    if any(len(vector) != dimensions * HALF.itemsize for vector in found):
        return None
    vectors = np.frombuffer(b"".join(found), dtype=">f2").astype(HALF)
    return vectors.reshape(len(found), dimensions)


Watch = Callable[[int, int], None]  # told how many documents are done, of how many


def export(collection: Collection, path: Path, *, watch: Watch | None = None) -> Manifest:
    """Write the collection into a new file at `path`, as it is at one moment; return what it holds.

    The file appears when it is complete, in place of one that was there. Memory is bounded by the
    longest documents. Raises OSError.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with transaction.atomic(), ZipFile(part, "w") as archive:
            one_moment()
            manifest = Export(collection, Packer(archive), path.parent).write(watch)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return manifest


def one_moment() -> None:
    """See the database as it is now until the transaction ends, whatever is ingested meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


@dataclass
class Export:
    """One export under way."""

    collection: Collection
    packer: Packer
    folder: Path  # for what has to wait
    matrices: dict[str, dict[Level, Matrix]] = field(default_factory=dict)  # by model
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Counts.model_fields, 0))

    def write(self, watch: Watch | None) -> Manifest:
        """Write all members, the manifest last."""
        with ExitStack() as stack:
            versions = stack.enter_context(Aside(self.folder))
            self.open_matrices(stack)
            self.write_documents(versions, watch)
            with self.packer.member(archive_format.VERSIONS) as member:
                versions.into(member)
            for place, levels in enumerate(self.matrices.values()):
                for level, matrix in levels.items():
                    with self.packer.member(
                        archive_format.matrix(place, level), packed=False
                    ) as member:
                        matrix.into(member)
        self.write_questions()
        self.write_collection()
        return self.write_manifest()

    def open_matrices(self, stack: ExitStack) -> None:
        """Make room for the vectors of each model the collection has any of."""
        found = DocumentVector.objects.filter(collection=self.collection).order_by()
        for name in sorted(found.values_list("model", flat=True).distinct()):
            first = found.filter(model=name).values_list("embedding", flat=True)[0]
            self.matrices[name] = {
                level: stack.enter_context(Matrix(self.folder, len(first))) for level in LEVELS
            }

    def write_documents(self, versions: Aside, watch: Watch | None) -> None:
        """Write a line per document, and put versions and vectors aside."""
        total = self.collection.documents.count()
        dimensions = {name: levels["chunks"].dimensions for name, levels in self.matrices.items()}
        with self.packer.member(archive_format.DOCUMENTS) as lines:
            for done, entry in enumerate(gathered(self.collection, dimensions), start=1):
                for name, levels in entry.vectors.items():
                    for level, vectors in levels.items():
                        self.matrices[name][level].append(vectors)
                lines.write(line(entry.document))
                versions.file.writelines(map(line, entry.versions))
                self.count(entry)
                if watch is not None:
                    watch(done, total)

    def count(self, entry: Entry) -> None:
        """Add a document and its parts to the counts."""
        self.counts["documents"] += 1
        self.counts["versions"] += len(entry.versions)
        self.counts["sections"] += len(entry.document.sections)
        self.counts["chunks"] += len(entry.document.chunks)
        self.counts["entities_named"] += entry.document.names
        self.counts["relations"] += len(entry.document.relations)

    def write_questions(self) -> None:
        """Write a line per golden question."""
        with self.packer.member(archive_format.QUESTIONS) as lines:
            for question in self.collection.golden_questions.order_by("pk").iterator():
                lines.write(line(QuestionRecord.model_validate(question)))
                self.counts["questions"] += 1

    def write_collection(self) -> None:
        """Write the collection itself."""
        calibrations = [
            CalibrationRecord.model_validate(each)
            for each in self.collection.calibrations.order_by("model")
        ]
        self.counts["calibrations"] = len(calibrations)
        record = CollectionRecord(
            name=self.collection.name,
            title=self.collection.title,
            description=self.collection.description,
            embedding_model=self.collection.embedding_model,
            calibrations=calibrations,
        )
        with self.packer.member(archive_format.COLLECTION) as member:
            member.write(line(record))

    def write_manifest(self) -> Manifest:
        """Write what all of it comes to."""
        manifest = Manifest(
            collection=self.collection.name,
            made=now(),
            counts=Counts(**self.counts),
            models=[
                ModelRecord(name=name, dimensions=levels["documents"].dimensions)
                for name, levels in self.matrices.items()
            ],
            members=dict(self.packer.members),
        )
        with self.packer.member(archive_format.MANIFEST) as member:
            member.write(line(manifest))
        return manifest


def line(record: Record) -> bytes:
    """Return the record as a line of JSON."""
    return record.model_dump_json().encode() + b"\n"
