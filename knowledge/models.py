"""Models of the knowledge app: collections, their documents, chunks and vectors."""

import uuid
from hashlib import blake2b

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.contrib.postgres.search import SearchVectorField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Cast
from django.utils.timezone import now
from pgvector.django import HalfVectorField, HnswIndex, VectorField

# Written out here because this module must not import the embedding runtime: web processes
# load the models and stay small. A test compares both with `knowledge.embedding`.
LOCAL_MODEL = "all-MiniLM-L6-v2"
LOCAL_DIMENSIONS = 384

COLLECTION_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}\Z"


def document_id(collection: str, source: str) -> str:
    """Return the 32 hexadecimal digits that identify `source` in the collection of that name."""
    return blake2b(f"{collection}\0{source}".encode(), digest_size=16).hexdigest()


class Collection(models.Model):
    """A body of documents that is searched together."""

    name = models.CharField(
        max_length=63,
        unique=True,
        validators=[RegexValidator(COLLECTION_NAME, "Use a-z, 0-9, '-' and '_'.")],
    )
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.title or self.name


class Document(models.Model):
    """One page of a collection, as it was last ingested."""

    id = models.CharField(primary_key=True, max_length=32, editable=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="documents")
    source = models.CharField(max_length=1000, help_text="Path or URL shown to the reader.")
    origin = models.CharField(
        max_length=1000, help_text="File it was read from: name of the ingested root, then path."
    )
    title = models.CharField(max_length=500)
    crumbs = models.JSONField(default=list, blank=True)
    description = models.TextField(blank=True)
    content = models.TextField(help_text="The whole text as normalised Markdown.")
    summary = models.TextField(blank=True)
    keypoints = models.JSONField(default=list, blank=True)
    keywords = models.JSONField(default=list, blank=True)
    version = models.PositiveIntegerField(default=1)
    last_updated = models.DateField(null=True, blank=True)
    audience = models.CharField(max_length=100, blank=True)
    language = models.CharField(max_length=16, default="en")
    # The PostgreSQL text search configuration its chunks were indexed with.
    config = models.CharField(max_length=63, default="english", editable=False)
    sha1 = models.CharField(max_length=40, help_text="Of the bytes it was read from.")
    created = models.DateTimeField(default=now, editable=False)
    updated = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("collection", "source")
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "source"), name="document_once_per_source"
            ),
            models.CheckConstraint(
                condition=models.Q(version__gte=1), name="document_version_starts_at_one"
            ),
        ]
        indexes = [models.Index(fields=("collection", "origin"), name="document_by_origin")]

    def __str__(self) -> str:
        return f"{self.title} (version {self.version})"


class Chunk(models.Model):
    """A part of a document that fits the embedding model's window."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    section = models.JSONField(default=list, blank=True)  # The last three headings above it.
    text = models.TextField()
    keywords = models.JSONField(default=list, blank=True)
    sha1 = models.CharField(max_length=40)
    tokens = models.PositiveIntegerField(help_text="As the embedding model sees it, with headings.")
    search = SearchVectorField(editable=False)

    class Meta:
        ordering = ("document", "number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="chunk_once_per_number"),
            models.CheckConstraint(
                condition=models.Q(number__gte=1), name="chunk_number_starts_at_one"
            ),
        ]
        indexes = [GinIndex(fields=("search",), name="chunk_by_words")]

    def __str__(self) -> str:
        return " > ".join([self.document.title, *self.section])


class Vector(models.Model):
    """A chunk's place in the space of one embedding model."""

    chunk = models.ForeignKey(Chunk, models.CASCADE, related_name="vectors")
    model = models.CharField(max_length=100)
    # No dimensions: every embedding model brings its own, and a partial index of its own.
    embedding = VectorField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("chunk", "model"), name="vector_once_per_model"),
        ]
        indexes = [
            HnswIndex(
                OpClass(
                    Cast("embedding", HalfVectorField(dimensions=LOCAL_DIMENSIONS)),
                    name="halfvec_cosine_ops",
                ),
                name="vector_by_cosine_minilm",
                condition=models.Q(model=LOCAL_MODEL),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} of chunk {self.chunk_id}"


class Ingest(models.Model):
    """One uploaded file on its way into a collection."""

    class Status(models.TextChoices):
        """Where the upload stands."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="ingests")
    name = models.CharField(max_length=1000)
    body = models.BinaryField()
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    report = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(default=now, editable=False)
    updated = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("-created",)
        indexes = [
            models.Index(
                fields=("created",),
                name="ingest_still_open",
                condition=models.Q(status__in=("queued", "running")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"
