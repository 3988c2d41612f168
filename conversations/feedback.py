"""Feedback: what users say of an answer, one word and a comment each."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.db.models import F, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.utils.timezone import now

from agents.models import Envelope
from conversations.errors import Forgotten, TurnInProgress

LONGEST_COMMENT = 2000


class Rating(models.TextChoices):
    """Thumbs up or down."""

    UP = "up"
    DOWN = "down"


class Feedback(models.Model):
    """What one user says of the answer of one turn; the latest word holds."""

    turn = models.ForeignKey(
        Envelope, on_delete=models.CASCADE, related_name="feedback", db_index=False
    )
    # Owner of the key or login; None: a visitor of the chat page, or somebody who was deleted.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    rating = models.CharField(max_length=4, choices=Rating)
    comment = models.TextField(blank=True)
    created = models.DateTimeField(default=now)
    updated = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "feedback"
        ordering = ("-updated", "-pk")
        constraints = (
            models.UniqueConstraint(fields=("turn", "by"), name="feedback_once_per_turn_and_user"),
        )
        indexes = (models.Index(fields=("updated",), name="feedback_by_time"),)

    def __str__(self) -> str:
        return f"Thumbs {self.rating}"


def rate(turn: Envelope, by: User | None, rating: str, comment: str) -> tuple[Feedback, bool]:
    """Store what a user says of a turn, and whether it is their first word on it.

    None is who has no login. Raises TurnInProgress before there is an answer, and Forgotten for one
    that was deleted.
    """
    with transaction.atomic():
        row = Envelope.objects.only("status").select_for_update().filter(pk=turn.pk).first()
        if row is None:
            raise Forgotten
        if not row.ended:
            raise TurnInProgress("This turn has no answer yet.")
        values = {"rating": rating, "comment": comment, "updated": now()}
        return Feedback.objects.update_or_create(turn=row, by=by, defaults=values)


def with_answers(rows: QuerySet[Feedback]) -> QuerySet[Feedback]:
    """Add what it is about: `question`, `answer`, `route` and `conversation_id` of its turn."""
    return rows.annotate(
        question=KeyTextTransform("text", "turn__memory"),
        answer=KeyTextTransform("response", "turn__payload"),
        route=KeyTextTransform("route", "turn__payload"),
        conversation_id=F("turn__conversation_id"),
    )
