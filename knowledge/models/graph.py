"""Graph: what documents speak of, and how these things are related."""

from django.db import models
from django.db.models import F, Q

from knowledge.models.collections import Collection
from knowledge.models.documents import Chunk, Document


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
