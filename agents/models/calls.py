"""Models of what language models were asked: every call, what it cost, and what may be spent."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import JSONField, Q, Value
from django.utils.timezone import now

from agents.llm.outcomes import Outcome
from agents.models.turns import Envelope


class ModelCall(models.Model):
    """One intended call of a model: journal, cache, bill and trace in one row."""

    # What the call is a part of, and its place there: "<envelope>/<step>", or "document/<sha-1>".
    subject = models.CharField(max_length=100)
    number = models.PositiveSmallIntegerField()
    envelope = models.ForeignKey(
        Envelope, on_delete=models.CASCADE, null=True, blank=True, related_name="model_calls"
    )
    step_number = models.PositiveIntegerField(null=True, blank=True)
    role = models.CharField(max_length=16)
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
    created = models.DateTimeField(default=now)

    class Meta:
        ordering = ("pk",)
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
            models.Index(fields=("created", "owner"), name="model_call_by_day_and_owner"),
            GinIndex(
                fields=("documents",), condition=Q(reusable=True), name="model_call_by_document"
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} asked {self.model}: {self.outcome}"


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
