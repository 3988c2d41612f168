"""Exporting: a collection into one file."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZipFile

from django.db import connection, transaction
from django.utils.timezone import now

from knowledge.archive import records
from knowledge.archive.contents import Entry
from knowledge.archive.gathering import gathered
from knowledge.archive.packing import Aside, Matrix, Packer
from knowledge.archive.records import (
    LEVELS,
    CalibrationRecord,
    CollectionRecord,
    Counts,
    Level,
    Manifest,
    ModelRecord,
    QuestionRecord,
    Record,
)
from knowledge.models import Collection, DocumentVector

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
            with self.packer.member(records.VERSIONS) as member:
                versions.into(member)
            for place, levels in enumerate(self.matrices.values()):
                for level, matrix in levels.items():
                    with self.packer.member(records.matrix(place, level), packed=False) as member:
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
        with self.packer.member(records.DOCUMENTS) as lines:
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
        with self.packer.member(records.QUESTIONS) as lines:
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
        with self.packer.member(records.COLLECTION) as member:
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
        with self.packer.member(records.MANIFEST) as member:
            member.write(line(manifest))
        return manifest


def line(record: Record) -> bytes:
    """Return the record as a line of JSON."""
    return record.model_dump_json().encode() + b"\n"
