"""Records: what an archive says, line by line, and what each line may hold.

An archive is a zip of

- `manifest.json`: format, counts, embedding models, size and SHA-256 of every other member;
- `collection.json`: the collection with its calibrations;
- `documents.jsonl`: a document a line, with sections, chunks and copies;
- `versions.jsonl`: a former version a line, in the order of their documents;
- `questions.jsonl`: a golden question a line;
- `vectors/<place of the model>/<level>.npy`: float16, (rows, dimensions), in the order of the
  documents that name the model.
"""

import json
from datetime import date
from typing import Annotated, Any, Literal, Self

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
from knowledge.ingestion.drafts import CONFIGS

FORMAT: Literal["docent-archive"] = "docent-archive"
FORMAT_VERSION: Literal[1] = 1
MANIFEST, COLLECTION = "manifest.json", "collection.json"
DOCUMENTS, VERSIONS, QUESTIONS = "documents.jsonl", "versions.jsonl", "questions.jsonl"
Level = Literal["documents", "sections", "chunks"]
LEVELS: tuple[Level, ...] = ("documents", "sections", "chunks")
KNOWN_CONFIGS = {"simple", *CONFIGS.values()}


def storable(text: str) -> str:
    """Refuse what PostgreSQL cannot store."""
    if "\0" in text:
        raise ValueError("a text holds a null character")
    return text


def storable_json(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what PostgreSQL cannot store."""
    if "\\u0000" in json.dumps(value):
        raise ValueError("a text holds a null character")
    return value


def known_config(name: str) -> str:
    """Refuse a text search configuration that no language here has."""
    if name not in KNOWN_CONFIGS:
        raise ValueError(f"{name!r} is no text search configuration known here")
    return name


Text = Annotated[str, AfterValidator(storable)]
Address = Annotated[Text, Field(min_length=1, max_length=1000)]
Title = Annotated[Text, Field(max_length=500)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[Text, Field(min_length=1, max_length=100)]


class Record(BaseModel):
    """Something an archive says; nothing more than declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)


class ModelRecord(Record):
    """An embedding model of which the archive holds vectors."""

    name: ModelName
    dimensions: Annotated[int, Field(ge=FEWEST_DIMENSIONS, le=MOST_DIMENSIONS)]


class MemberRecord(Record):
    """The size and digest of a member."""

    bytes: NonNegativeInt
    sha256: Sha256


class Counts(Record):
    """How many rows of each kind there are."""

    documents: NonNegativeInt = 0
    versions: NonNegativeInt = 0
    sections: NonNegativeInt = 0
    chunks: NonNegativeInt = 0
    questions: NonNegativeInt = 0
    calibrations: NonNegativeInt = 0


class Manifest(Record):
    """The archive as a whole."""

    format: Literal["docent-archive"] = FORMAT
    version: Literal[1] = FORMAT_VERSION
    collection: str
    made: AwareDatetime
    counts: Counts
    models: list[ModelRecord]
    members: dict[str, MemberRecord]

    def matrices(self) -> list[str]:
        """Return the names of the members that hold vectors."""
        return [matrix(place, level) for place in range(len(self.models)) for level in LEVELS]


def matrix(place: int, level: Level) -> str:
    """Return the name of the member with a model's vectors of a level."""
    return f"vectors/{place}/{level}.npy"


class CalibrationRecord(Record):
    """A threshold of confidence."""

    model: ModelName
    threshold: Annotated[float, Field(allow_inf_nan=False)]
    report: Annotated[dict[str, Any], AfterValidator(storable_json)]
    created: AwareDatetime


class CollectionRecord(Record):
    """A collection without what is in it."""

    name: str
    title: Annotated[Text, Field(max_length=200)]
    description: Text
    embedding_model: ModelName
    calibrations: list[CalibrationRecord]


class QuestionRecord(Record):
    """A golden question."""

    question: Annotated[Text, Field(min_length=1)]
    sources: list[Text]
    created: AwareDatetime


class SectionRecord(Record):
    """A section of a document."""

    number: Number
    path: list[Text]


class ChunkRecord(Record):
    """A chunk of a document; `section` is its section's number."""

    section: Number
    number: Number
    text: Text
    keywords: list[Text]
    page: PositiveInt | None
    sha1: Digest
    tokens: NonNegativeInt


class CopyRecord(Record):
    """Another place of a document's bytes."""

    source: Address
    origin: Address
    sha1: Digest
    created: AwareDatetime


class VersionRecord(Record):
    """What a document said before; `document` is its source."""

    document: Address
    number: Number
    title: Title
    content: Text
    sha1: Digest
    created: AwareDatetime
    replaced: AwareDatetime


class Described(Record):
    """What a document says and is known of it."""

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
    last_updated: date | None
    audience: Annotated[Text, Field(max_length=100)]
    language: Annotated[Text, Field(max_length=16)]
    config: Annotated[str, AfterValidator(known_config)]
    sha1: Digest
    created: AwareDatetime
    updated: AwareDatetime


class DocumentRecord(Described):
    """A document with its parts; `models` are those that have vectors for all of them."""

    sections: list[SectionRecord]
    chunks: list[ChunkRecord]
    copies: list[CopyRecord]
    models: list[NonNegativeInt]  # places in the manifest's list

    @model_validator(mode="after")
    def parts_fit(self) -> Self:
        """Refuse parts that are there twice and chunks of no section."""
        sections = [section.number for section in self.sections]
        chunks = [chunk.number for chunk in self.chunks]
        if len({*sections}) < len(sections) or len({*chunks}) < len(chunks):
            raise ValueError("two parts of a document have the same number")
        if len({*self.models}) < len(self.models):
            raise ValueError("a document names a model twice")
        if not {chunk.section for chunk in self.chunks} <= {*sections}:
            raise ValueError("a chunk belongs to a section that is not there")
        return self

    def rows(self, level: Level) -> int:
        """Return how many vectors a model has of this document."""
        return {"documents": 1, "sections": len(self.sections), "chunks": len(self.chunks)}[level]
