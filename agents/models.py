"""Models of a turn: the envelope, its steps and faults, what models were asked and tools did."""

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, JSONField, Q, Value
from django.utils.timezone import now

from agents.llm.outcomes import Outcome
from agents.names import Role, Status
from agents.tools.tool import ToolOutcome


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
    sender_role = models.CharField(max_length=24, blank=True)
    target_role = models.JSONField(default=list)
    target_list = models.CharField(max_length=80)  # Redis stream of progress
    result_list = models.CharField(max_length=80)  # Redis stream of the final result
    deadline = models.DateTimeField()
    error_id = models.CharField(max_length=32, blank=True)
    create_ts = models.DateTimeField(default=now)
    update_ts = models.DateTimeField(auto_now=True)
    counted = models.BooleanField(default=False, db_default=False)  # see agents.trace.tally
    # The span of who asked, as W3C's Trace Context has it; empty: there was none.
    traceparent = models.CharField(max_length=55, blank=True, default="", db_default="")

    class Meta:
        ordering = ("-create_ts",)
        indexes = (
            models.Index(
                fields=("create_ts",), condition=Q(counted=False), name="envelope_to_count"
            ),
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
    role = models.CharField(max_length=24, choices=choices(Role))
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

    def end_time(self) -> datetime:
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
    role = models.CharField(max_length=24)
    step_number = models.PositiveIntegerField(null=True, blank=True)
    summary = models.TextField()
    details = models.TextField(blank=True)
    created = models.DateTimeField(default=now)

    class Meta:
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.code


class ModelCall(models.Model):
    """One intended call of a model: journal, cache, bill and trace in one row.

    Of a call that was sent and of which nothing was heard, `input_tokens` is an estimate and `cost`
    the most it can come to.
    """

    # What the call is a part of, and its place there: "<envelope>/<step>", or "document/<sha-1>".
    subject = models.CharField(max_length=100)
    number = models.PositiveSmallIntegerField()
    envelope = models.ForeignKey(
        Envelope, on_delete=models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    step_number = models.PositiveIntegerField(null=True, blank=True)
    role = models.CharField(max_length=24)
    # Whose content the request holds: nobody else is served from it. Empty: nobody's.
    owner = models.CharField(max_length=200, blank=True)
    # The API key it was asked with, as far as budgets tell keys apart. Empty: without one.
    key = models.CharField(max_length=16, blank=True, db_default="", default="")
    prompt = models.CharField(max_length=40)
    prompt_hash = models.CharField(max_length=12)
    model = models.CharField(max_length=160)
    provider = models.CharField(max_length=40)
    request = models.JSONField()
    # Of the request, what does not matter for the reply (the time of day) left out.
    request_hash = models.CharField(max_length=64)
    # The hash of the first request, when this one mended what was wrong with its reply.
    mends = models.CharField(max_length=64, blank=True, db_default="", default="")
    documents = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    outcome = models.CharField(
        max_length=16, choices=[(each.value, each.value.replace("_", " ")) for each in Outcome]
    )
    reply = models.TextField(blank=True)
    # What the model wants to be called: [{"id", "name", "arguments": the JSON as it wrote it}].
    tool_calls = models.JSONField(default=list, blank=True, db_default=Value([], JSONField()))
    finish_reason = models.CharField(max_length=20, blank=True)
    error = models.TextField(blank=True)
    # What was tried before: [{"model", "outcome", "seconds", "error"}].
    attempts = models.JSONField(default=list, blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)  # USD
    # The call whose reply was used again; this one was not made and cost nothing.
    cached_from = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    reusable = models.BooleanField(default=True)
    seconds = models.FloatField(default=0.0)
    first_token_seconds = models.FloatField(null=True, blank=True)
    created = models.DateTimeField(default=now)  # when it ended, or was sent
    # What the provider calls its reply; empty: it did not say.
    response_id = models.CharField(max_length=100, blank=True, default="", db_default="")
    counted = models.BooleanField(default=False, db_default=False)  # see agents.trace.tally

    class Meta:
        ordering = ("pk",)
        permissions = (("connect_model", "Can connect providers of language models"),)
        constraints = (
            models.UniqueConstraint(
                fields=("subject", "number"), name="model_call_once_per_number_of_a_subject"
            ),
        )
        indexes = (
            models.Index(
                fields=("request_hash", "owner", "-created"),
                condition=Q(reusable=True, outcome="ok", cached_from__isnull=True),
                name="model_call_to_use_again",
            ),
            models.Index(
                fields=("mends", "owner", "-created"),
                condition=Q(reusable=True, outcome="ok", cached_from__isnull=True) & ~Q(mends=""),
                name="model_call_mended",
            ),
            # All that usage and budgets ask for: they read no row with its texts.
            models.Index(
                fields=("created", "owner"),
                include=(
                    "role",
                    "model",
                    "key",
                    "envelope",
                    "outcome",
                    "cached_from",
                    "input_tokens",
                    "output_tokens",
                    "cost",
                    "seconds",
                ),
                name="model_call_usage",
            ),
            models.Index(
                fields=("created",), condition=Q(outcome="sent"), name="model_call_on_its_way"
            ),
            models.Index(
                fields=("created",), condition=Q(counted=False), name="model_call_to_count"
            ),
            GinIndex(
                fields=("documents",), condition=Q(reusable=True), name="model_call_by_document"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} asked {self.model}: {self.outcome}"


class ToolRun(models.Model):
    """What came of one call of a tool: journal, trace and figures in one row."""

    class Gain(models.TextChoices):
        """How little a call brought that went well."""

        SOMETHING = "", "something"
        EMPTY = "empty", "nothing found"
        NOTHING_NEW = "nothing_new", "nothing more to be had"

    envelope = models.ForeignKey(Envelope, on_delete=models.CASCADE, related_name="tool_runs")
    step_number = models.PositiveIntegerField()
    number = models.PositiveIntegerField()  # place among the calls of the step
    round = models.PositiveSmallIntegerField(default=0)  # of the loop; 0: called by rules
    # The call of a model whose reply asked for it.
    model_call = models.ForeignKey(ModelCall, on_delete=models.SET_NULL, null=True, blank=True)
    role = models.CharField(max_length=24)
    tool = models.CharField(max_length=64)  # as the model called it; it may not exist
    # By name; of what could not be understood, the beginning as a text.
    arguments = models.JSONField(default=dict)
    outcome = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in ToolOutcome]
    )
    result = models.JSONField(null=True, blank=True)  # whole
    gain = models.CharField(max_length=12, choices=Gain, blank=True, default=Gain.SOMETHING)
    error = models.TextField(blank=True)  # for the model
    error_id = models.CharField(max_length=32, blank=True)  # of the fault, for people
    attempts = models.PositiveSmallIntegerField(default=0)  # 0: it was not run
    seconds = models.FloatField(default=0.0)
    # Of the step, the call and how often it came before: found when the step is done again.
    key = models.CharField(max_length=64)
    # Of the turn and the call: whoever did it has this key, and nobody else can.
    effect_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 unique
    # The call that had the effect already; this one was not made.
    repeats = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    created = models.DateTimeField(default=now)

    class Meta:
        verbose_name = "tool call"
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("key",), name="tool_run_once_per_call_of_a_step"),
            models.UniqueConstraint(fields=("effect_key",), name="tool_effect_once_per_turn"),
        )
        indexes = (models.Index(fields=("created",), name="tool_run_by_time"),)

    def __str__(self) -> str:
        return f"{self.role} called {self.tool}: {self.outcome}"


class Price(models.Model):
    """What a model costs here, in place of the published price."""

    model = models.CharField(max_length=160, unique=True, help_text="model@provider")
    input_per_million = models.DecimalField(
        "USD per million input tokens", max_digits=10, decimal_places=4
    )
    output_per_million = models.DecimalField(
        "USD per million output tokens", max_digits=10, decimal_places=4
    )

    class Meta:
        ordering = ("model",)

    def __str__(self) -> str:
        return f"{self.model}: {self.input_per_million} in, {self.output_per_million} out"


class Budget(models.Model):
    """What all keys of a user may spend together on models in a day (UTC), not what each may."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    usd_per_day = models.DecimalField("USD per day", max_digits=10, decimal_places=4)

    def __str__(self) -> str:
        return f"{self.owner}: {self.usd_per_day} USD a day"


__all__ = ["Budget", "Envelope", "Fault", "ModelCall", "Price", "Report", "Step", "ToolRun"]


class Report(models.Model):
    """What came of holding many requirements against many documents, as `analyse` wrote it."""

    title = models.CharField(max_length=300)
    collection = models.CharField(max_length=63)  # whose documents were read
    counts = models.JSONField(default=dict)  # what requirements came to → how many
    text = models.TextField()  # Markdown
    created = models.DateTimeField(default=now)

    class Meta:
        verbose_name = "analysis report"
        ordering = ("-created",)

    def __str__(self) -> str:
        return self.title


class Tally(models.Model):
    """One figure that only grows: how often something happened since Docent counts, and how much.

    What it was counted from may be forgotten; the figure stays.
    """

    metric = models.CharField(max_length=60)
    labels = ArrayField(models.CharField(max_length=200))  # their values, in the metric's order
    total = models.FloatField(default=0.0)
    # Of a histogram: how many were at most as large as each bound and larger than the one before.
    buckets = ArrayField(models.BigIntegerField(), default=list)

    class Meta:
        verbose_name_plural = "tallies"
        ordering = ("metric", "labels")
        constraints = (models.UniqueConstraint(fields=("metric", "labels"), name="tally_once"),)

    def __str__(self) -> str:
        return f"{self.metric} {self.labels}: {self.total}"
