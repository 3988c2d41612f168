"""Gathering: a collection's documents as an archive has them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models import BinaryField, Func, Model
from numpy.typing import NDArray

from knowledge.archive.contents import Entry, Matrices
from knowledge.archive.packing import HALF
from knowledge.archive.records import (
    LEVELS,
    ChunkRecord,
    CopyRecord,
    Described,
    DocumentRecord,
    Level,
    SectionRecord,
    VersionRecord,
)
from knowledge.archive.statements import stated
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
