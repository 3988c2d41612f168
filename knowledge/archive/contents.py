"""Contents: the members of an archive, and what a line of each may hold.

An archive is a zip of

- `manifest.json`: format, counts, embedding models, size and SHA-256 of every other member;
- `collection.json`: the collection with its calibrations;
- `documents.jsonl`: a document a line, with sections, chunks, copies and what it states;
- `versions.jsonl`: a former version a line, in the order of their documents;
- `questions.jsonl`: a golden question a line;
- `vectors/<place of the model>/<level>.npy`: float16, (rows, dimensions), in the order of the
  documents that name the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    model_validator,
)

from knowledge.embedding.embedder import FEWEST_DIMENSIONS, MOST_DIMENSIONS
from knowledge.errors import KnowledgeError
from knowledge.graph import LONGEST_KIND, LONGEST_NAME, LONGEST_PREDICATE, key
from knowledge.ingestion.drafts import CONFIGS
from knowledge.models import ChunkVector, DocumentVector, SectionVector, Vector
from knowledge.postgres_text import storable_json

FORMAT: Literal["docent-archive"] = "docent-archive"
FORMAT_VERSION: Literal[3] = 3
READABLE = (1, 2, 3)
MANIFEST, COLLECTION = "manifest.json", "collection.json"
DOCUMENTS, VERSIONS, QUESTIONS = "documents.jsonl", "versions.jsonl", "questions.jsonl"
TEXTS = (COLLECTION, DOCUMENTS, VERSIONS, QUESTIONS)

# Of what the manifest says how many there are; there is no graph in the first version.
KINDS = ("documents", "versions", "sections", "chunks", "questions", "calibrations",
         "entities_named", "relations")  # fmt: skip
Level = Literal["documents", "sections", "chunks"]
LEVELS: tuple[Level, ...] = ("documents", "sections", "chunks")
# Where the vectors of a level are stored, and what of.
TABLES: dict[Level, tuple[type[Vector], str]] = {
    "documents": (DocumentVector, "document"),
    "sections": (SectionVector, "section"),
    "chunks": (ChunkVector, "chunk"),
}
HALF = np.dtype("<f2")
Matrices = dict[Level, NDArray[np.float16]]  # each (rows, dimensions)


class UnusableArchive(KnowledgeError):
    """The archive cannot be imported."""


Value = TypeVar("Value", str, dict[str, Any])


def storable_only(value: Value) -> Value:
    """Refuse what PostgreSQL cannot store."""
    if storable_json(value) != value:
        raise ValueError("a text holds a null character or half a character")
    return value


def known_config(name: str) -> str:
    """Refuse a text search configuration that no language here has."""
    if name not in {"simple", *CONFIGS.values()}:
        raise ValueError(f"{name!r} is no text search configuration known here")
    return name


def findable(name: str) -> str:
    """Refuse a name without a letter or digit: nothing could be found by it."""
    if not key(name):
        raise ValueError(f"{name!r} is no name of anything")
    return name


Text = Annotated[str, AfterValidator(storable_only)]
Address = Annotated[Text, Field(min_length=1, max_length=1000)]
Edition = Annotated[Text, Field(max_length=100)]
Title = Annotated[Text, Field(max_length=500)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[Text, Field(min_length=1, max_length=100)]
Name = Annotated[Text, Field(max_length=LONGEST_NAME), AfterValidator(findable)]
CountedKind = Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$")]


class Record(BaseModel):
    """Something an archive says; nothing more than declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def line(self) -> bytes:
        """Return it as a line of JSON."""
        return self.model_dump_json().encode() + b"\n"


class Model(Record):
    """An embedding model of which the archive holds vectors."""

    name: ModelName
    dimensions: Annotated[int, Field(ge=FEWEST_DIMENSIONS, le=MOST_DIMENSIONS)]


class Member(Record):
    """The size and digest of a member."""

    bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(Record):
    """The archive as a whole."""

    format: Literal["docent-archive"] = FORMAT
    version: Literal[1, 2, 3] = FORMAT_VERSION
    collection: str
    made: AwareDatetime
    counts: dict[CountedKind, NonNegativeInt]
    models: list[Model]
    members: dict[str, Member]

    @model_validator(mode="before")
    @classmethod
    def is_readable(cls, fields: Any) -> Any:
        """Refuse other formats before anything else is asked of them."""
        if not isinstance(fields, dict) or fields.get("format", FORMAT) != FORMAT:
            raise ValueError("it is not that of a Docent archive")
        version = fields.get("version", FORMAT_VERSION)
        if version not in READABLE:
            raise ValueError(
                f"it is of format version {version}, and this Docent reads versions "
                f"{READABLE[0]} to {READABLE[-1]}: import it with a Docent like the one that "
                "exported it"
            )
        return fields


def matrix_name(place: int, level: Level) -> str:
    """Return the name of the member with a model's vectors of a level."""
    return f"vectors/{place}/{level}.npy"


def matrix_names(models: Sequence[Model]) -> list[str]:
    """Return the names of all members that hold vectors."""
    return [matrix_name(place, level) for place in range(len(models)) for level in LEVELS]


class Calibration(Record):
    """A threshold of confidence."""

    model: ModelName
    threshold: Annotated[float, Field(allow_inf_nan=False)]
    report: Annotated[dict[str, Any], AfterValidator(storable_only)]
    created: AwareDatetime


class Collection(Record):
    """A collection without what is in it."""

    name: str
    title: Annotated[Text, Field(max_length=200)]
    description: Text
    embedding_model: ModelName
    calibrations: list[Calibration]


class Question(Record):
    """A golden question."""

    question: Annotated[Text, Field(min_length=1)]
    sources: list[Text]
    created: AwareDatetime


class Section(Record):
    """A section of a document."""

    number: Number
    path: list[Text]


class Chunk(Record):
    """A chunk of a document; `section` is its section's number."""

    section: Number
    number: Number
    text: Text
    keywords: list[Text]
    page: PositiveInt | None
    sha1: Digest
    tokens: NonNegativeInt


class Copy(Record):
    """Another place of a document's bytes."""

    source: Address
    origin: Address
    sha1: Digest
    created: AwareDatetime


class Entity(Record):
    """Something a document speaks of; `names` are those it calls it by."""

    name: Name
    kind: Annotated[Text, Field(max_length=LONGEST_KIND)]
    names: Annotated[list[Name], Field(min_length=1)]


class Relation(Record):
    """What a document says of two entities, by their places in its list; `chunk` is a number."""

    subject: NonNegativeInt
    predicate: Annotated[Text, Field(max_length=LONGEST_PREDICATE)]
    object: NonNegativeInt
    chunk: Number
    valid_from: date | None
    valid_to: date | None

    @model_validator(mode="after")
    def holds_some_day(self) -> Self:
        """Refuse what ends before it begins."""
        if self.valid_from and self.valid_to and self.valid_from > self.valid_to:
            raise ValueError("a relation ends before it begins")
        return self


class Version(Record):
    """What a document said before; `document` is its source."""

    document: Address
    number: Number
    edition: Edition = ""
    title: Title
    content: Text
    sha1: Digest
    created: AwareDatetime
    replaced: AwareDatetime


class Document(Record):
    """A document with its parts; `models` are those that have vectors for all of them."""

    source: Address
    origin: Address
    title: Title
    crumbs: list[Text]
    description: Text
    content: Text
    summary: Text
    keypoints: list[Text]
    keywords: list[Text]
    starts: list[tuple[int, int]] = []  # line → page; archives of before have none
    version: Number
    edition: Edition = ""  # archives of before have none
    last_updated: date | None
    audience: Annotated[Text, Field(max_length=100)]
    language: Annotated[Text, Field(max_length=16)]
    config: Annotated[str, AfterValidator(known_config)]
    sha1: Digest
    created: AwareDatetime
    updated: AwareDatetime
    sections: list[Section]
    chunks: list[Chunk]
    copies: list[Copy]
    entities: list[Entity] = []
    relations: list[Relation] = []
    models: list[NonNegativeInt]  # places in the manifest's list

    @model_validator(mode="after")
    def parts_fit(self) -> Self:
        """Refuse parts that are there twice, and those of something that is not there."""
        sections = {section.number for section in self.sections}
        chunks = {chunk.number for chunk in self.chunks}
        if len(sections) < len(self.sections) or len(chunks) < len(self.chunks):
            raise ValueError("two parts of a document have the same number")
        if len({*self.models}) < len(self.models):
            raise ValueError("a document names a model twice")
        if not {chunk.section for chunk in self.chunks} <= sections:
            raise ValueError("a chunk belongs to a section that is not there")
        for relation in self.relations:
            if max(relation.subject, relation.object) >= len(self.entities):
                raise ValueError("a relation is of an entity that is not there")
            if relation.chunk not in chunks:
                raise ValueError("a relation is said in a chunk that is not there")
        return self

    def rows(self, level: Level) -> int:
        """Return how many vectors a model has of this document."""
        return {"documents": 1, "sections": len(self.sections), "chunks": len(self.chunks)}[level]


PARTS = {"sections", "chunks", "copies", "entities", "relations", "models"}
DOCUMENT_FIELDS = Document.model_fields.keys() - PARTS  # those of the row itself


@dataclass(frozen=True)
class Entry:
    """A document with all that belongs to it."""

    document: Document
    versions: list[Version]
    vectors: dict[str, Matrices]  # by model

    @property
    def counts(self) -> dict[str, int]:
        """How much of each kind it adds to the archive."""
        document = self.document
        parts = {name: len(getattr(document, name)) for name in ("sections", "chunks", "relations")}
        names = sum(len(entity.names) for entity in document.entities)
        return parts | {"documents": 1, "versions": len(self.versions), "entities_named": names}
