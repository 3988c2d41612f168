"""Records: what an archive says, line by line, and what each line may hold.

An archive is a zip of

- `manifest.json`: format, counts, embedding models, size and SHA-256 of every other member;
- `collection.json`: the collection with its calibrations;
- `documents.jsonl`: a document a line, with sections, chunks, copies and what it states;
- `versions.jsonl`: a former version a line, in the order of their documents;
- `questions.jsonl`: a golden question a line;
- `vectors/<place of the model>/<level>.npy`: float16, (rows, dimensions), in the order of the
  documents that name the model.
"""

from collections.abc import Iterable
from datetime import date
from itertools import groupby
from operator import itemgetter
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
from knowledge.errors import KnowledgeError
from knowledge.graph import LONGEST, Named, key, stored
from knowledge.ingestion.drafts import CONFIGS
from knowledge.models import Chunk, Document, EntityName, Relation
from knowledge.postgres_text import is_storable, storable_json

KNOWN_CONFIGS = {"simple", *CONFIGS.values()}


def as_stored(text: str) -> str:
    """Refuse what PostgreSQL cannot store."""
    if not is_storable(text):
        raise ValueError("a text holds a null character or half a character")
    return text


def json_as_stored(value: dict[str, Any]) -> dict[str, Any]:
    """Refuse what PostgreSQL cannot store."""
    if storable_json(value) != value:
        raise ValueError("a text holds a null character or half a character")
    return value


def known_config(name: str) -> str:
    """Refuse a text search configuration that no language here has."""
    if name not in KNOWN_CONFIGS:
        raise ValueError(f"{name!r} is no text search configuration known here")
    return name


def telling(name: str) -> str:
    """Refuse a name without a letter or digit: nothing could be found by it."""
    if not key(name):
        raise ValueError(f"{name!r} is no name of anything")
    return name


Text = Annotated[str, AfterValidator(as_stored)]
Address = Annotated[Text, Field(min_length=1, max_length=1000)]
Title = Annotated[Text, Field(max_length=500)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=1, le=2**31 - 1)]
ModelName = Annotated[Text, Field(min_length=1, max_length=100)]
Name = Annotated[Text, Field(max_length=LONGEST), AfterValidator(telling)]


FORMAT: Literal["docent-archive"] = "docent-archive"
FORMAT_VERSION: Literal[2] = 2
READABLE = (1, 2)  # those of version 1 have no graph
MANIFEST, COLLECTION = "manifest.json", "collection.json"
DOCUMENTS, VERSIONS, QUESTIONS = "documents.jsonl", "versions.jsonl", "questions.jsonl"
Level = Literal["documents", "sections", "chunks"]
LEVELS: tuple[Level, ...] = ("documents", "sections", "chunks")


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
    entities_named: NonNegativeInt = 0
    relations: NonNegativeInt = 0


class Manifest(Record):
    """The archive as a whole."""

    format: Literal["docent-archive"] = FORMAT
    version: Literal[1, 2] = FORMAT_VERSION
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
    report: Annotated[dict[str, Any], AfterValidator(json_as_stored)]
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


class EntityRecord(Record):
    """Something a document speaks of; `names` are those it calls it by."""

    name: Name
    kind: Annotated[Text, Field(max_length=40)]
    names: Annotated[list[Name], Field(min_length=1)]


class RelationRecord(Record):
    """What a document says of two entities, by their places in its list; `chunk` is a number."""

    subject: NonNegativeInt
    predicate: Annotated[Text, Field(max_length=80)]
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
    entities: list[EntityRecord] = []
    relations: list[RelationRecord] = []
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

    @model_validator(mode="after")
    def statements_fit(self) -> Self:
        """Refuse relations of no entity and of no chunk."""
        chunks = {chunk.number for chunk in self.chunks}
        for relation in self.relations:
            if max(relation.subject, relation.object) >= len(self.entities):
                raise ValueError("a relation is of an entity that is not there")
            if relation.chunk not in chunks:
                raise ValueError("a relation is said in a chunk that is not there")
        return self

    @property
    def names(self) -> int:
        """How many names it calls its entities by."""
        return sum(len(entity.names) for entity in self.entities)

    def rows(self, level: Level) -> int:
        """Return how many vectors a model has of this document."""
        return {"documents": 1, "sections": len(self.sections), "chunks": len(self.chunks)}[level]


class UnusableArchive(KnowledgeError):
    """The archive cannot be imported."""


class CollectionDiffers(KnowledgeError):
    """The collection that is there holds something else than the archive."""


def stated(document: str) -> tuple[list[EntityRecord], list[RelationRecord]]:
    """Return the entities that the document with this id names, and its relations of them."""
    named = EntityName.objects.filter(document=document).order_by("entity_id", "pk")
    rows = named.values_list("entity_id", "entity__name", "entity__kind", "name")
    entities: list[EntityRecord] = []
    places: dict[int, int] = {}
    for (entity, name, kind), group in groupby(rows, key=itemgetter(0, 1, 2)):
        places[entity] = len(entities)
        entities.append(EntityRecord(name=name, kind=kind, names=[row[-1] for row in group]))
    relations = Relation.objects.filter(document=document).order_by("pk").select_related("chunk")
    return entities, [
        RelationRecord(
            subject=places[each.subject_id],
            predicate=each.predicate,
            object=places[each.object_id],
            chunk=each.chunk.number,
            valid_from=each.valid_from,
            valid_to=each.valid_to,
        )
        for each in relations.iterator()
    ]


def restate(document: Document, chunks: Iterable[Chunk], record: DocumentRecord) -> None:
    """Insert what the record states, in the caller's transaction.

    Entities are those of the collection that have the same name and kind, made where there are
    none. By place and not by name as `knowledge.graph.write` has it: two kinds of things may be
    called the same.
    """
    named = {
        (key(each.name), each.kind): Named(each.name, each.kind, tuple(each.names))
        for each in record.entities
    }
    if not named:
        return
    known = stored(document.collection, named)
    ids = [known[key(each.name), each.kind] for each in record.entities]
    names = {
        (entity, key(name)): name
        for entity, each in zip(ids, record.entities, strict=True)
        for name in each.names
    }
    EntityName.objects.bulk_create(
        EntityName(entity_id=entity, document=document, name=name, key=made)
        for (entity, made), name in names.items()
    )
    by_number = {chunk.number: chunk for chunk in chunks}
    Relation.objects.bulk_create(
        (
            Relation(
                document=document,
                chunk=by_number[each.chunk],
                subject_id=ids[each.subject],
                object_id=ids[each.object],
                **each.model_dump(exclude={"chunk", "subject", "object"}),
            )
            for each in record.relations
        ),
        ignore_conflicts=True,
    )
