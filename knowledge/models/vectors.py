"""Vectors: where documents, sections and chunks lie in the space of an embedding model."""

from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models.functions import Cast
from pgvector.django import HalfVectorField, HnswIndex

from knowledge.models.collections import Collection
from knowledge.models.documents import Chunk, Document, Section
from knowledge.names import LOCAL_DIMENSIONS, LOCAL_MODEL

# How many neighbours are looked at when a vector is put into an index. With twice pgvector's 64 it
# takes half as long again, and a search finds all of the ten nearest of 100,000 where it found 0.93
# of them looking around as far.
EF_CONSTRUCTION = 128


def nearest(name: str) -> HnswIndex:
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
        indexes = [nearest("document_by_cosine_minilm")]


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
        indexes = [nearest("chunk_by_cosine_minilm")]
