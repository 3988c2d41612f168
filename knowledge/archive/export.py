"""Export: a collection into one file."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, groupby
from math import prod
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connection, transaction
from django.db.models import BinaryField, Func, Model
from django.utils.timezone import now

from knowledge.archive import contents
from knowledge.archive.container import ArchiveWriter, Kind, matrix_header
from knowledge.archive.contents import HALF, LEVELS, TABLES, Entry, Level, Matrices, matrix_name
from knowledge.models import (
    Chunk,
    Collection,
    Copy,
    DocumentVector,
    Entity,
    Relation,
    Section,
    Version,
)

DOCUMENTS_AT_ONCE = 8
PIECE = 1024 * 1024  # bytes
# Where the rows have what a record calls by its number or source.
PATHS = {"section": "section__number", "chunk": "chunk__number", "document": "document__source"}

Watch = Callable[[int, int], None]  # told how many documents are done, of how many


class Sent(Func):
    """A vector in its binary form: its length and 16 bits, then big-endian half precision.

    As text it would become a Python number for each dimension.
    """

    function = "halfvec_send"
    output_field = BinaryField()


def export(collection: Collection, path: Path, *, watch: Watch | None = None) -> contents.Manifest:
    """Write the collection into a new file at `path`, as it is at one moment; return what it holds.

    The file appears when it is complete, in place of one that was there. Memory is bounded by the
    longest documents. Raises OSError.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with transaction.atomic(), ZipFile(part, "w") as file, ExitStack() as stack:
            with connection.cursor() as cursor:
                # Whatever is ingested meanwhile is not seen.
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            models = models_of(collection)
            spools = {
                name: stack.enter_context(TemporaryFile(dir=path.parent))
                for name in (contents.VERSIONS, *contents.matrix_names(models))
            }
            manifest = Export(collection, ArchiveWriter(file), models, spools).write(watch)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return manifest


def models_of(collection: Collection) -> list[contents.Model]:
    """Return the models that the collection has any vectors of."""
    vectors = DocumentVector.objects.filter(collection=collection).order_by("model")
    firsts = vectors.distinct("model").values_list("model", "embedding")
    return [contents.Model(name=name, dimensions=len(vector)) for name, vector in firsts]


@dataclass
class Export:
    """One export under way.

    A zip is written member by member, and a document is read once: what of it belongs into later
    members waits in `spools`, nameless files by the members' names.
    """

    collection: Collection
    writer: ArchiveWriter
    models: list[contents.Model]
    spools: Mapping[str, IO[bytes]]
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(contents.KINDS, 0)))

    def write(self, watch: Watch | None) -> contents.Manifest:
        """Write all members, the manifest last."""
        self.writer.add(contents.DOCUMENTS, self.document_lines(watch))
        self.writer.add(contents.VERSIONS, pieces(self.spools[contents.VERSIONS]))
        for place, model in enumerate(self.models):
            for level in LEVELS:
                spool = self.spools[name := matrix_name(place, level)]
                header = matrix_header(spool.tell(), model.dimensions)
                self.writer.add(name, chain([header], pieces(spool)))
        self.writer.add(contents.QUESTIONS, self.question_lines())
        self.writer.add(contents.COLLECTION, [self.collection_line()])
        manifest = contents.Manifest(
            collection=self.collection.name,
            made=now(),
            counts=self.counts,
            models=self.models,
            members=dict(self.writer.members),
        )
        self.writer.add(contents.MANIFEST, [manifest.line()])
        return manifest

    def document_lines(self, watch: Watch | None) -> Iterator[bytes]:
        """Yield a line per document, and put its versions and vectors aside."""
        documents = self.collection.documents.order_by("source")
        total = documents.count()
        # As dictionaries: instances that know each other would stay in memory until the garbage
        # collector comes for them.
        rows = documents.values("pk", *contents.DOCUMENT_FIELDS)
        for done, row in enumerate(rows.iterator(chunk_size=DOCUMENTS_AT_ONCE), start=1):
            entry = entry_of(row.pop("pk"), row, self.models)
            self.counts.update(entry.counts)
            self.spools[contents.VERSIONS].writelines(each.line() for each in entry.versions)
            for place in entry.document.models:
                for level, vectors in entry.vectors[self.models[place].name].items():
                    self.spools[matrix_name(place, level)].write(vectors.data)
            yield entry.document.line()
            if watch is not None:
                watch(done, total)

    def question_lines(self) -> Iterator[bytes]:
        """Yield a line per golden question."""
        questions = self.collection.golden_questions.order_by("pk")
        for row in questions.values(*contents.Question.model_fields).iterator():
            self.counts["questions"] += 1
            yield contents.Question.model_validate(row).line()

    def collection_line(self) -> bytes:
        """Return the collection itself as a line."""
        calibrations = self.collection.calibrations.order_by("model")
        rows = list(calibrations.values(*contents.Calibration.model_fields))
        self.counts["calibrations"] = len(rows)
        names = contents.Collection.model_fields.keys() - {"calibrations"}
        fields = {name: getattr(self.collection, name) for name in names}
        return contents.Collection.model_validate(fields | {"calibrations": rows}).line()


def pieces(spool: IO[bytes]) -> Iterator[bytes]:
    """Yield all that was written into the file."""
    spool.seek(0)
    while piece := spool.read(PIECE):
        yield piece


def entry_of(document: str, row: dict[str, Any], models: Sequence[contents.Model]) -> Entry:
    """Return the document with this id and row, with all that belongs to it."""
    entities, relations = statements(document)
    record = contents.Document(
        **row,
        sections=parts(Section, contents.Section, document),
        chunks=parts(Chunk, contents.Chunk, document),
        copies=parts(Copy, contents.Copy, document, order="source"),
        entities=entities,
        relations=relations,
        models=[],
    )
    vectors = vectors_of(document, record, models)
    places = [place for place, model in enumerate(models) if model.name in vectors]
    versions = parts(Version, contents.Version, document)
    return Entry(record.model_copy(update={"models": places}), versions, vectors)


def parts(table: type[Model], kind: type[Kind], document: str, order: str = "number") -> list[Kind]:
    """Return what a table has of a document as records."""
    names = [*kind.model_fields]
    rows = table._default_manager.filter(document=document).order_by(order)
    values = rows.values_list(*(PATHS.get(name, name) for name in names))
    return [kind.model_validate(dict(zip(names, row, strict=True))) for row in values]


def statements(document: str) -> tuple[list[contents.Entity], list[contents.Relation]]:
    """Return the entities that the document with this id names, and its relations of them."""
    called = ArrayAgg("names__name", order_by="names__pk")
    entities = Entity.objects.filter(names__document=document).annotate(called=called)
    rows = list(entities.order_by("pk").values_list("pk", "name", "kind", "called"))
    places = {pk: place for place, (pk, *_) in enumerate(rows)}
    relations = parts(Relation, contents.Relation, document, order="pk")
    return [contents.Entity(name=name, kind=kind, names=names) for _, name, kind, names in rows], [
        each.model_copy(update={"subject": places[each.subject], "object": places[each.object]})
        for each in relations
    ]


def vectors_of(
    document: str, record: contents.Document, models: Sequence[contents.Model]
) -> dict[str, Matrices]:
    """Return model → vectors, of those of the models that have all of a document."""
    stored = {level: stored_vectors(document, level) for level in LEVELS}
    complete = {}
    for model in models:
        shapes = {level: (record.rows(level), model.dimensions) for level in LEVELS}
        matrices = {
            level: np.frombuffer(stored[level].get(model.name, b""), ">f2") for level in LEVELS
        }
        if all(matrices[level].size == prod(shapes[level]) for level in LEVELS):
            complete[model.name] = {
                level: matrices[level].astype(HALF).reshape(shapes[level]) for level in LEVELS
            }
    return complete


def stored_vectors(document: str, level: Level) -> dict[str, bytes]:
    """Return model → its vectors of a document, one after the other, as `Sent`."""
    table, owner = TABLES[level]
    path, number = ("document", "pk") if owner == "document" else (
        f"{owner}__document", f"{owner}__number"
    )  # fmt: skip
    rows = table._default_manager.filter(**{path: document}).order_by("model", number)
    models = groupby(rows.values_list("model", Sent("embedding")), itemgetter(0))
    return {model: b"".join(bytes(sent)[4:] for _, sent in group) for model, group in models}
