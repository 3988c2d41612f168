"""Ingests: jobs that take files, uploads and web pages into a collection, item by item."""

import uuid

from django.db import models
from django.utils.timezone import now
from pgvector.django import HalfVectorField

from knowledge.models.documents import Collection
from knowledge.models.followed_sources import Source


class Ingest(models.Model):
    """One job of the library: what somebody asked to be taken in, or done to a collection."""

    class Kind(models.TextChoices):
        """What the job does; all but the first and the last are done once at a time."""

        INGEST = "ingest", "take in"
        CALIBRATE = "calibrate", "calibrate"
        REINDEX = "reindex", "make vectors"
        EXPORT = "export", "export"
        EVALUATE = "evaluate", "ask golden questions"
        MOVE = "move", "move documents"

    class Status(models.TextChoices):
        """Where the job stands."""

        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="ingests")
    kind = models.CharField(
        max_length=10, choices=Kind, default=Kind.INGEST, db_default=Kind.INGEST
    )
    source = models.ForeignKey(
        Source, models.SET_NULL, null=True, blank=True, related_name="runs", editable=False
    )
    name = models.CharField(max_length=1000, help_text="What was asked for, in a few words.")
    status = models.CharField(max_length=16, choices=Status, default=Status.QUEUED)
    # What was asked for, with force and keep_missing, and what listing it found: roots by name,
    # folders whose missing documents are removed, folders nobody could list, files passed over.
    options = models.JSONField(default=dict, blank=True)
    current = models.CharField(max_length=1000, blank=True, help_text="The item at hand.")
    cancelling = models.BooleanField(default=False, help_text="Somebody asked to stop it.")
    # What came of it; of a job that takes nothing in, until then `done` of `total`.
    report = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    attempts = models.PositiveIntegerField(default=0, help_text="Since the last progress.")
    token = models.UUIDField(null=True, editable=False)  # Of who may write its outcome.
    worker = models.CharField(max_length=200, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(default=now, editable=False)
    started = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)
    updated = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("-created",)
        constraints = [
            models.UniqueConstraint(
                fields=("collection", "kind"),
                name="job_once_at_a_time",
                condition=models.Q(status__in=("queued", "running"))
                & ~models.Q(kind__in=("ingest", "move")),
            ),
        ]
        indexes = [
            models.Index(
                fields=("created",),
                name="ingest_still_open",
                condition=models.Q(status__in=("queued", "running")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"


class Item(models.Model):
    """One file, web page or upload of a job, and what became of it."""

    class Kind(models.TextChoices):
        """Where its bytes come from."""

        FILE = "file"
        URL = "url"
        GIT = "git"
        UPLOAD = "upload"
        STORED = "stored"  # a document, taken in anew from what is stored of it

    class Status(models.TextChoices):
        """What became of it; all but the first are final."""

        WAITING = "waiting"
        NEW = "new"
        CHANGED = "changed"
        UNCHANGED = "unchanged"
        DUPLICATE = "duplicate"
        LISTED = "listed"  # an archive or sitemap: what it holds became items of their own
        SKIPPED = "skipped"

    ingest = models.ForeignKey(Ingest, models.CASCADE, related_name="items", db_index=False)
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=16, choices=Kind)
    origin = models.CharField(max_length=1000)
    location = models.TextField(
        blank=True, help_text="Path on the server, URL, repository, or document."
    )
    # That of a sitemap is what it names, until it is listed again.
    body = models.BinaryField(null=True, help_text="Of an upload, until it is stored.")
    sha1 = models.CharField(max_length=40, blank=True, help_text="Of the bytes that were read.")
    status = models.CharField(max_length=16, choices=Status, default=Status.WAITING)
    reason = models.TextField(blank=True, help_text="Why it was skipped, or what it is a copy of.")
    documents = models.PositiveIntegerField(default=0, help_text="Finished, in their order.")
    counts = models.JSONField(default=dict, blank=True)  # outcome → documents
    chunks = models.PositiveIntegerField(default=0, help_text="Written.")
    warnings = models.JSONField(default=list, blank=True)
    # Sources of documents it held before and holds no more; deleted when the job ends.
    gone = models.JSONField(default=list, blank=True)
    updated = models.DateTimeField(default=now, editable=False)

    class Meta:
        ordering = ("ingest", "number")
        constraints = [
            models.UniqueConstraint(fields=("ingest", "number"), name="item_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.origin} ({self.status})"


class Encoded(models.Model):
    """The vector of a chunk of a long document that is not stored yet; gone with its job."""

    ingest = models.ForeignKey(Ingest, models.CASCADE, related_name="encoded", db_index=False)
    sha1 = models.CharField(max_length=40, help_text="Of the text as the model was given it.")
    embedding = HalfVectorField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=("ingest", "sha1"), name="encoded_once_per_text"),
        ]

    def __str__(self) -> str:
        return self.sha1


class Piece(models.Model):
    """A part of the file that an export made; a web process elsewhere sends it to a browser."""

    ingest = models.ForeignKey(Ingest, models.CASCADE, related_name="pieces", db_index=False)
    number = models.PositiveIntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ("ingest", "number")
        constraints = [
            models.UniqueConstraint(fields=("ingest", "number"), name="piece_once_per_number"),
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.ingest_id}"
