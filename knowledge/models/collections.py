"""Collections: bodies of documents, and what is known about searching them."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.timezone import now

from knowledge.names import LOCAL_MODEL

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
