"""Traces: which answers relied on a document, and receipts of what was deleted."""

import uuid

from django.db import models
from django.utils.timezone import now


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
