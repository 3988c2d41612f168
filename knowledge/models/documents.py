"""Documents: the collections they lie in, what they said before, and what was deleted."""

import uuid
from hashlib import blake2b

from django.core.validators import RegexValidator
from django.db import models
from django.utils.timezone import now

from knowledge.identifiers import LOCAL_MODEL

COLLECTION_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}\Z"


class Collection(models.Model):
    """A body of documents that is searched together."""

    name = models.CharField(
        max_length=63,
        unique=True,
        validators=[RegexValidator(COLLECTION_NAME, "Use a-z, 0-9, '-' and '_'.")],
    )
    title = models.CharField(max_length=200, blank=True)
    description = models.TextField(blank=True)
    embedding_model = models.CharField(
        max_length=100,
        default=LOCAL_MODEL,
        editable=False,
        help_text="Whose vectors are searched; `reindex` changes it.",
    )
    only_by_name = models.BooleanField(
        default=False,
        help_text="Searched only where it is named: by no question that is asked of everything.",
    )
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.title or self.name


class Revision(models.Model):
    """How often a collection changed: what was found before the last time may not be so now.

    Not a column of the collection: whoever saves one that was loaded before would set it back.
    """

    collection = models.OneToOneField(Collection, models.CASCADE, primary_key=True)
    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.number} of {self.collection_id}"


class Calibration(models.Model):
    """The threshold of confidence of one collection under one embedding model."""

    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="calibrations", db_index=False
    )
    model = models.CharField(max_length=100)
    threshold = models.FloatField()
    report = models.JSONField(default=dict, blank=True)  # what it was derived from
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "model"), name="calibration_once_per_model"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.threshold:.3f} for {self.collection} with {self.model}"


class GoldenQuestion(models.Model):
    """A question of which somebody said where its answer stands, or that there is none."""

    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="golden_questions", db_index=False
    )
    question = models.TextField()
    sources = models.JSONField(
        default=list, blank=True, help_text="Sources of the documents that answer it; [] for none."
    )
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("collection", "id")
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "question"), name="golden_question_once_per_collection"
            ),
        ]

    def __str__(self) -> str:
        return self.question


def document_id(collection: str, source: str) -> str:
    """Return the 32 hexadecimal digits that identify `source` in the collection of that name."""
    return blake2b(f"{collection}\0{source}".encode(), digest_size=16).hexdigest()


class Document(models.Model):
    """One page of a collection, as it was last ingested."""

    id = models.CharField(primary_key=True, max_length=32, editable=False)
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="documents", db_index=False
    )
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
    edition = models.CharField(
        max_length=100, blank=True, help_text="Its own version, as it names it."
    )
    last_updated = models.DateField(null=True, blank=True)
    audience = models.CharField(max_length=100, blank=True)
    language = models.CharField(max_length=16, default="en")
    # The PostgreSQL text search configuration its chunks were indexed with.
    config = models.CharField(max_length=63, default="english", editable=False)
    # (line of the content from 0, page or slide that begins there), where there are any.
    starts = models.JSONField(default=list, blank=True, editable=False)
    sha1 = models.CharField(max_length=40, help_text="Of the bytes it was read from.")
    # What its file says of itself, and what staff wrote over it: `knowledge.ingestion.edits`.
    stated = models.JSONField(default=dict, blank=True, editable=False)
    edits = models.JSONField(default=dict, blank=True, editable=False)
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
        indexes = [
            models.Index(fields=("collection", "origin"), name="document_by_origin"),
            models.Index(fields=("collection", "sha1"), name="document_by_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.title} (version {self.version})"


class Section(models.Model):
    """The text between two headings of a document."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="sections", db_index=False)
    number = models.PositiveIntegerField()
    path = models.JSONField(default=list, blank=True)  # The last three headings above it.

    class Meta:
        ordering = ("document", "number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="section_once_per_number"),
        ]

    def __str__(self) -> str:
        return " > ".join([self.document.title, *self.path])


class Chunk(models.Model):
    """A part of a section that fits the embedding model's window."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="chunks", db_index=False)
    section = models.ForeignKey(Section, models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    text = models.TextField()
    keywords = models.JSONField(default=list, blank=True)
    page = models.PositiveIntegerField(
        null=True, blank=True, help_text="Page or slide it begins on, where there are any."
    )
    sha1 = models.CharField(max_length=40)
    tokens = models.PositiveIntegerField(help_text="As the embedding model sees it, with headings.")

    class Meta:
        ordering = ("document", "number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="chunk_once_per_number"),
            models.CheckConstraint(
                condition=models.Q(number__gte=1), name="chunk_number_starts_at_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.section}, part {self.number}"


class Version(models.Model):
    """What a document said before it changed, so that an old answer can still be checked."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    edition = models.CharField(max_length=100, blank=True)
    title = models.CharField(max_length=500)
    content = models.TextField()
    sha1 = models.CharField(max_length=40)
    created = models.DateTimeField(help_text="When this version was taken in.")
    replaced = models.DateTimeField(default=now, help_text="When the next one was.")

    class Meta:
        ordering = ("document", "-number")
        constraints = [
            models.UniqueConstraint(fields=("document", "number"), name="version_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.title} (version {self.number})"


class Copy(models.Model):
    """Another place where the bytes of a document lie; they are stored once."""

    document = models.ForeignKey(Document, models.CASCADE, related_name="copies")
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="copies", db_index=False
    )
    source = models.CharField(max_length=1000)
    origin = models.CharField(max_length=1000)
    sha1 = models.CharField(max_length=40)  # Another than the document's once that changed.
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("document", "source")
        constraints = [
            models.UniqueConstraint(fields=("collection", "source"), name="copy_once_per_source"),
        ]

    def __str__(self) -> str:
        return self.source


class Reliance(models.Model):
    """An answer that cited a version of a document; it outlives the document."""

    turn = models.UUIDField()
    document = models.CharField(max_length=32)
    version = models.PositiveIntegerField()
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=("turn", "document", "version"), name="reliance_once_per_answer"
            ),
        ]
        indexes = [models.Index(fields=("document", "version"), name="reliance_by_document")]

    def __str__(self) -> str:
        return f"{self.turn} on {self.document}, version {self.version}"


class Receipt(models.Model):
    """What a deletion removed: names and counts, nothing of what it said."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.CharField(max_length=1000)
    by = models.CharField(max_length=150, blank=True, help_text="Who asked for it.")
    reason = models.CharField(max_length=200, blank=True)
    documents = models.JSONField(default=list)  # id, source, title and version of each
    removed = models.JSONField(default=dict)  # kind of row → how many
    answers = models.JSONField(default=list)  # turns whose answers had cited one of them
    created = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return f"{len(self.documents)} deleted from {self.collection}"
