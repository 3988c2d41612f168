"""Models of a conversation: who said what, and what is remembered of it."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.timezone import now

from agents.models import Envelope
from knowledge.models import Collection


class Conversation(models.Model):
    """A talk between one person and the assistant."""

    class Status(models.TextChoices):
        """Whose turn it is."""

        OPEN = "open"
        RUNNING = "running"
        AWAITING_USER = "awaiting_user"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, db_index=False
    )  # None: asked on this machine, by the command line.
    session = models.CharField(max_length=64)  # The client's own name for it.
    user_id = models.CharField(max_length=128, blank=True)  # Who asks, as the client says.
    collections = models.ManyToManyField(Collection, blank=True)
    status = models.CharField(max_length=16, choices=Status, default=Status.OPEN)
    language_preference = models.CharField(max_length=8, blank=True)
    summary = models.TextField(blank=True)
    # Time of the last message the summary holds; None: of none yet.
    summarised_until = models.DateTimeField(null=True, blank=True)
    topic = models.TextField(blank=True)
    facts = models.JSONField(default=list, blank=True)
    last_agent = models.CharField(max_length=16, blank=True)
    context_flags = models.JSONField(default=dict, blank=True)
    # As `agents.attributes.RefundForm`; None: nothing is being asked back.
    refund_form = models.JSONField(null=True, blank=True)
    billing_case_id = models.CharField(max_length=200, blank=True)  # Of the case opened last.
    open_clarification = models.JSONField(null=True, blank=True)
    clarification_rounds = models.PositiveSmallIntegerField(default=0)
    created = models.DateTimeField(default=now)
    updated = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-updated",)
        constraints = (
            models.UniqueConstraint(
                fields=("owner", "session"),
                nulls_distinct=False,
                name="conversation_once_per_session_of_an_owner",
            ),
        )

    def __str__(self) -> str:
        return f"Conversation {self.session}"


class Message(models.Model):
    """One thing said in a conversation."""

    class Author(models.TextChoices):
        """Who said it."""

        USER = "user"
        ASSISTANT = "assistant"
        STAFF = "staff"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages"
    )
    role = models.CharField(max_length=10, choices=Author)
    text = models.TextField()
    turn = models.ForeignKey(
        Envelope,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="messages",
        db_index=False,
    )
    # What the client calls this message, so that sending it again changes nothing.
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 unique
    created = models.DateTimeField(default=now)

    class Meta:
        ordering = ("created",)
        constraints = (
            models.UniqueConstraint(fields=("turn", "role"), name="message_once_per_turn_and_role"),
            models.UniqueConstraint(
                fields=("idempotency_key", "conversation"),
                condition=models.Q(idempotency_key__isnull=False),
                name="message_once_per_key",
            ),
        )

    def __str__(self) -> str:
        return f"{self.role}: {self.text[:60]}"
