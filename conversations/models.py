"""Models of a conversation: who said what, and what is remembered of it."""

import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.timezone import now

from agents.models import Envelope
from conversations.assistants import Assistant
from conversations.endings import Ending, Gap
from conversations.feedback import Feedback
from conversations.grants import Grant, Key
from conversations.staff_groups import StaffGroup
from knowledge.models import Collection

__all__ = (
    "Assistant",
    "Conversation",
    "Ending",
    "Feedback",
    "Gap",
    "Grant",
    "Key",
    "Message",
    "StaffGroup",
)


class Conversation(models.Model):
    """A talk between one person and the assistant."""

    class Status(models.TextChoices):
        """Whose turn it is."""

        OPEN = "open"
        RUNNING = "running"
        AWAITING_USER = "awaiting_user"
        WITH_STAFF = "with_staff"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, db_index=False
    )  # None: asked on this machine, by the command line.
    session = models.CharField(max_length=64)  # The client's own name for it.
    user_id = models.CharField(max_length=128, blank=True)  # Who asks, as the client says.
    collections = models.ManyToManyField(Collection, blank=True)
    # The assistant it began with, by name: when that one goes, no other one takes over.
    assistant = models.CharField(max_length=63, blank=True)
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

    def message(self, role: str, text: str, **more: Any) -> "Message":
        """Return a message to be saved by who holds the lock of this row, and saves it too.

        It is later than all before it, by whose clock ever: who follows asks for what came after.
        """
        created = max(now(), self.updated + Message.LEAST)
        return Message(conversation=self, role=role, text=text, created=created, **more)


class Message(models.Model):
    """One thing said in a conversation."""

    class Author(models.TextChoices):
        """Who said it."""

        USER = "user"
        ASSISTANT = "assistant"
        STAFF = "staff"

    LEAST = timedelta(microseconds=1)

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
    # Who of staff wrote it.
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, db_index=False
    )
    # For the assistant, whom staff give the conversation back to: the user is not shown it.
    is_note = models.BooleanField(default=False, db_default=False)
    # The user asked otherwise instead: it belongs to the conversation no more.
    taken_back = models.BooleanField(default=False, db_default=False)
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


class Handover(models.Model):
    """One time that a conversation is with staff, from being asked for to its end."""

    class Why(models.TextChoices):
        """What made it."""

        PERSON = "person", "asked for a person"
        ROUNDS = "rounds", "asked back too often"
        STAFF = "staff", "taken over by staff"

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="handovers"
    )
    why = models.CharField(max_length=8, choices=Why)
    requested = models.DateTimeField(default=now)
    # Who answers; None: nobody yet.
    assigned = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    taken = models.DateTimeField(null=True, blank=True)  # by who is assigned
    # The first thing the user said that nobody answered yet; None: staff wait for the user.
    waiting_since = models.DateTimeField(null=True, blank=True)
    read_until = models.DateTimeField(null=True, blank=True)  # by who is assigned
    returned = models.DateTimeField(null=True, blank=True)
    closed = models.DateTimeField(null=True, blank=True)
    note = models.TextField(blank=True)  # for the assistant

    class Meta:
        verbose_name, verbose_name_plural = "conversation with staff", "inbox"
        ordering = ("requested",)
        constraints = (
            models.UniqueConstraint(
                fields=("conversation",),
                condition=models.Q(returned__isnull=True, closed__isnull=True),
                name="handover_open_once_per_conversation",
            ),
            models.CheckConstraint(
                condition=models.Q(returned__isnull=True) | models.Q(closed__isnull=True),
                name="handover_ends_one_way",
            ),
        )

    def __str__(self) -> str:
        return f"Conversation with staff since {self.requested:%Y-%m-%d %H:%M}"

    @property
    def is_open(self) -> bool:
        """Whether staff answer."""
        return self.returned is None and self.closed is None


class Notification(models.Model):
    """A word to staff that a conversation waits for them: sent at least once, by its id once."""

    class Channel(models.TextChoices):
        """How it is sent."""

        WEBHOOK = "webhook", "webhook"
        EMAIL = "email", "e-mail"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    handover = models.ForeignKey(
        Handover, on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    channel = models.CharField(max_length=8, choices=Channel)
    due = models.DateTimeField(null=True, default=now)  # None: sent, or given up
    attempts = models.PositiveSmallIntegerField(default=0)
    sent = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)  # of the last attempt

    class Meta:
        ordering = ("channel",)
        constraints = (
            models.UniqueConstraint(
                fields=("handover", "channel"), name="notification_once_per_channel"
            ),
        )
        indexes = (
            models.Index(
                fields=("due",), condition=models.Q(due__isnull=False), name="notification_due"
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_channel_display()} about {self.handover}"
