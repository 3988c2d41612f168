"""Models of a turn: the envelope, its steps, and the faults an operator looks up."""

import uuid
from datetime import datetime, timedelta

from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now

from agents.names import Role, Status


def choices(words: type[Role] | type[Status]) -> list[tuple[str, str]]:
    """Return an enumeration as Django choices."""
    return [(word.value, word.value.replace("_", " ")) for word in words]


class Envelope(models.Model):
    """One user message on its way through the agents."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation_id = models.UUIDField(db_index=True)
    message_id = models.UUIDField()
    status = models.CharField(max_length=16, choices=choices(Status), default=Status.RUNNING)
    memory = models.JSONField(default=dict)  # What the turn saw when it began; never changes.
    payload = models.JSONField(default=dict)  # Memory plus everything agents wrote since.
    version = models.PositiveIntegerField(default=0)
    step_count = models.PositiveIntegerField(default=0)
    process_count = models.PositiveIntegerField(default=0)
    total_processing_time = models.FloatField(default=0.0)  # seconds of work, waiting excluded
    sender_role = models.CharField(max_length=16, blank=True)
    target_role = models.JSONField(default=list)
    target_list = models.CharField(max_length=80)  # Redis stream of progress
    result_list = models.CharField(max_length=80)  # Redis stream of the final result
    deadline = models.DateTimeField()
    error_id = models.CharField(max_length=32, blank=True)
    create_ts = models.DateTimeField(default=now)
    update_ts = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-create_ts",)
        indexes = (
            models.Index(
                fields=("deadline",),
                condition=Q(status="running"),
                name="envelope_running_by_deadline",
            ),
        )

    def __str__(self) -> str:
        return f"Turn {self.id} ({self.status})"

    @property
    def ended(self) -> bool:
        """Whether nothing can happen to it any more."""
        return self.status != Status.RUNNING


class Step(models.Model):
    """One piece of work for one role. A ready row is the promise that it will be done."""

    class Status(models.TextChoices):
        """Where a step stands."""

        READY = "ready"
        RUNNING = "running"
        DONE = "done"
        QUARANTINED = "quarantined"
        CANCELLED = "cancelled"

    LEASE = timedelta(seconds=30)
    ATTEMPTS = 3
    RETRY_AFTER = (timedelta(seconds=1), timedelta(seconds=5))

    # The unique constraint below is its index.
    envelope = models.ForeignKey(
        Envelope, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    number = models.PositiveIntegerField()
    batch = models.PositiveIntegerField()  # Number of the step that asked for this one.
    role = models.CharField(max_length=16, choices=choices(Role))
    stage = models.CharField(max_length=16)
    status = models.CharField(max_length=12, choices=Status, default=Status.READY)
    attempt = models.PositiveSmallIntegerField(default=0)
    # How many turns its user had under way when this one began: the lowest place goes first.
    place = models.PositiveIntegerField(default=0, db_default=0)
    available_at = models.DateTimeField(default=now)
    rung_at = models.DateTimeField(default=now)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    # Whether a model or the role's own rules did it; empty for roles that never ask a model.
    mode = models.CharField(max_length=10, blank=True, default="", db_default="")
    # Why the rules did it although a model is set.
    degraded = models.TextField(blank=True, default="", db_default="")
    output = models.JSONField(default=dict)
    error = models.TextField(blank=True)
    created = models.DateTimeField(default=now)
    started = models.DateTimeField(null=True, blank=True)
    ended = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(
                fields=("envelope", "number"), name="step_once_per_number_of_an_envelope"
            ),
            models.CheckConstraint(
                condition=~Q(status="running") | Q(lease_token__isnull=False),
                name="step_running_only_under_a_lease",
            ),
            models.CheckConstraint(
                condition=Q(ended__isnull=True)
                | Q(started__isnull=True)
                | Q(ended__gte=F("started")),
                name="step_ends_after_it_starts",
            ),
        )
        indexes = (
            models.Index(
                fields=("available_at",),
                condition=Q(status__in=("ready", "running")),
                name="step_open_by_time",
            ),
            models.Index(
                fields=("role", "place", "available_at"),
                condition=Q(status="ready"),
                name="step_ready_in_order",
            ),
        )

    def __str__(self) -> str:
        return f"Step {self.number} ({self.role}, {self.status})"

    def condition(self, at: datetime) -> str:
        """Return queued, running or lost for an open step, else its status.

        Queued was never taken and so cannot have failed; lost was taken by a worker that
        stopped renewing its lease.
        """
        if self.status == self.Status.READY:
            return "queued"
        if self.status == self.Status.RUNNING and self.lease_until and self.lease_until < at:
            return "lost"
        return str(self.status)

    def over(self) -> datetime:
        """Return the time at which the step ends, by whose clock ever not before it began."""
        return max(now(), self.started or now())

    def postpone(self) -> None:
        """Give a claimed step back, to be taken again a little later."""
        self.status, self.lease_token, self.lease_until = self.Status.READY, None, None
        self.available_at = now() + self.RETRY_AFTER[self.attempt - 1]
        self.save()

    @property
    def wait_seconds(self) -> float | None:
        """Seconds between becoming available and being taken; None while queued."""
        return (self.started - self.available_at).total_seconds() if self.started else None

    @property
    def run_seconds(self) -> float | None:
        """Seconds of the last attempt; None until it ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


class Fault(models.Model):
    """One error: the user was shown its code, the operator finds the rest here."""

    code = models.CharField(max_length=32, unique=True)
    envelope = models.ForeignKey(
        Envelope, on_delete=models.CASCADE, null=True, blank=True, related_name="faults"
    )
    role = models.CharField(max_length=16)
    step_number = models.PositiveIntegerField(null=True, blank=True)
    summary = models.TextField()
    details = models.TextField(blank=True)
    created = models.DateTimeField(default=now)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.code
