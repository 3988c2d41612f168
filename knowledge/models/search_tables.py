"""Search tables: the words, vectors, entities and relations by which documents are found."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Cast
from pgvector.django import HalfVectorField, HnswIndex

from knowledge.identifiers import LOCAL_DIMENSIONS, LOCAL_MODEL
from knowledge.models.documents import Chunk, Collection, Document, Section


class Posting(models.Model):
    """A word of a chunk; written by `knowledge.search.postings` only.

    Rows are many, so its table is made by hand in a migration: no id, no key but the index that
    is read, and the database itself deletes the rows of a chunk.
    """

    pk = models.CompositePrimaryKey("chunk", "term")
    chunk = models.ForeignKey(Chunk, models.DO_NOTHING, related_name="+")
    collection = models.IntegerField()  # four bytes: eight would be padded to sixteen
    impact = models.FloatField()  # float4 in the table
    term = models.TextField()  # as the configuration of its document stems it

    def __str__(self) -> str:
        return f"{self.term} in {self.chunk_id}: {self.impact:.2f}"


class CommonTerm(models.Model):
    """A word that stands in more chunks than a search reads, and in how many at the last census."""

    pk = models.CompositePrimaryKey("collection", "term")
    # The database deletes it with its collection, as it does the rest of this module.
    collection = models.ForeignKey(Collection, models.DO_NOTHING, related_name="+")
    term = models.TextField()
    chunks = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.term}: {self.chunks}"


class Census(models.Model):
    """What a search needs to know of a collection as a whole, counted now and then."""

    collection = models.OneToOneField(
        Collection, models.DO_NOTHING, primary_key=True, related_name="census"
    )
    # The text search configurations of its documents, complete at any time.
    configs = ArrayField(models.TextField(), default=list)
    chunks = models.PositiveIntegerField(null=True)  # None until it was counted
    newest = models.BigIntegerField(default=0)  # id of the newest chunk that was counted

    def __str__(self) -> str:
        return f"{self.chunks} chunks of {self.collection}"


# How many neighbours are looked at when a vector is put into an index. With twice pgvector's 64 it
# takes half as long again, and a search finds all of the ten nearest of 100,000 where it found 0.93
# of them looking around as far.
EF_CONSTRUCTION = 128


def cosine_index(name: str) -> HnswIndex:
    """Return the index of the local model's vectors; `reindex` makes those of other models."""
    return HnswIndex(
        OpClass(
            Cast("embedding", HalfVectorField(dimensions=LOCAL_DIMENSIONS)),
            name="halfvec_cosine_ops",
        ),
        ef_construction=EF_CONSTRUCTION,
        name=name,
        condition=models.Q(model=LOCAL_MODEL),
    )


class Vector(models.Model):
    """A unit vector of one embedding model."""

    # Filters on the collection must not cost a join for every candidate of an index scan.
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    model = models.CharField(max_length=100)
    # No dimensions: every embedding model brings its own, and a partial index of its own.
    embedding = HalfVectorField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.model} in {self.collection_id}"


class DocumentVector(Vector):
    """Where a document as a whole lies."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="vectors", db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=("document", "model"), name="document_vector_once_per_model"
            ),
        ]
        indexes = [cosine_index("document_by_cosine_minilm")]


class SectionVector(Vector):
    """Where a section lies; read for sections at hand, so none is looked for through an index."""

    section = models.ForeignKey(Section, models.CASCADE, related_name="vectors", db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=("section", "model"), name="section_vector_once_per_model"
            ),
        ]


class ChunkVector(Vector):
    """Where a chunk lies."""

    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="vectors", db_index=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("chunk", "model"), name="chunk_vector_once_per_model"),
        ]
        indexes = [cosine_index("chunk_by_cosine_minilm")]


class Entity(models.Model):
    """Something that documents of a collection speak of; it goes with the last that does."""

    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="entities", db_index=False
    )
    name = models.CharField(max_length=200)
    key = models.CharField(max_length=200)  # the name as `knowledge.graph.key` makes it
    kind = models.CharField(max_length=40)

    class Meta:
        ordering = ("name", "kind")
        verbose_name_plural = "entities"
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "key", "kind"), name="entity_once_per_name_and_kind"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class EntityName(models.Model):
    """A name by which a document calls an entity."""

    entity = models.ForeignKey(Entity, models.CASCADE, related_name="names", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    key = models.CharField(max_length=200)

    class Meta:
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(
                fields=("entity", "document", "key"), name="entity_name_once_per_document"
            ),
        ]
        indexes = [models.Index(fields=("key",), name="entity_name_by_key")]

    def __str__(self) -> str:
        return self.name


class Relation(models.Model):
    """A statement of a document about two entities, and the days from which to which it holds."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="relations", db_index=False)
    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="+")  # where it is said
    subject = models.ForeignKey(Entity, models.CASCADE, related_name="statements")
    predicate = models.CharField(max_length=80)
    object = models.ForeignKey(Entity, models.CASCADE, related_name="statements_about")
    valid_from = models.DateField(null=True, blank=True)  # None: the document does not say
    valid_to = models.DateField(null=True, blank=True)  # the last day

    class Meta:
        ordering = ("document", "id")
        constraints = [
            models.UniqueConstraint(
                fields=("document", "subject", "predicate", "object", "valid_from", "valid_to"),
                nulls_distinct=False,
                name="relation_once_per_document",
            ),
            models.CheckConstraint(
                condition=Q(valid_from__isnull=True)
                | Q(valid_to__isnull=True)
                | Q(valid_from__lte=F("valid_to")),
                name="relation_holds_some_day",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"
