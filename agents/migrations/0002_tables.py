import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import agents.names


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0001_functions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Price",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "model",
                    models.CharField(help_text="model@provider", max_length=160, unique=True),
                ),
                (
                    "input_per_million",
                    models.DecimalField(
                        decimal_places=4, max_digits=10, verbose_name="USD per million input tokens"
                    ),
                ),
                (
                    "output_per_million",
                    models.DecimalField(
                        decimal_places=4,
                        max_digits=10,
                        verbose_name="USD per million output tokens",
                    ),
                ),
            ],
            options={
                "ordering": ("model",),
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "usd_per_day",
                    models.DecimalField(
                        decimal_places=4, max_digits=10, verbose_name="USD per day"
                    ),
                ),
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Envelope",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("conversation_id", models.UUIDField(db_index=True)),
                ("message_id", models.UUIDField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("awaiting_user", "awaiting user"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("expired", "expired"),
                        ],
                        default=agents.names.Status["RUNNING"],
                        max_length=16,
                    ),
                ),
                ("memory", models.JSONField(default=dict)),
                ("payload", models.JSONField(default=dict)),
                ("version", models.PositiveIntegerField(default=0)),
                ("step_count", models.PositiveIntegerField(default=0)),
                ("process_count", models.PositiveIntegerField(default=0)),
                ("total_processing_time", models.FloatField(default=0.0)),
                ("sender_role", models.CharField(blank=True, max_length=16)),
                ("target_role", models.JSONField(default=list)),
                ("target_list", models.CharField(max_length=80)),
                ("result_list", models.CharField(max_length=80)),
                ("deadline", models.DateTimeField()),
                ("error_id", models.CharField(blank=True, max_length=32)),
                ("create_ts", models.DateTimeField(default=django.utils.timezone.now)),
                ("update_ts", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ("-create_ts",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("status", "running")),
                        fields=["deadline"],
                        name="envelope_running_by_deadline",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Fault",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code", models.CharField(max_length=32, unique=True)),
                ("role", models.CharField(max_length=16)),
                ("step_number", models.PositiveIntegerField(blank=True, null=True)),
                ("summary", models.TextField()),
                ("details", models.TextField(blank=True)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "envelope",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="faults",
                        to="agents.envelope",
                    ),
                ),
            ],
            options={
                "ordering": ("-created",),
            },
        ),
        migrations.CreateModel(
            name="ModelCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("subject", models.CharField(max_length=100)),
                ("number", models.PositiveSmallIntegerField()),
                ("step_number", models.PositiveIntegerField(blank=True, null=True)),
                ("role", models.CharField(max_length=16)),
                ("owner", models.CharField(blank=True, max_length=200)),
                ("key", models.CharField(blank=True, db_default="", default="", max_length=16)),
                ("prompt", models.CharField(max_length=40)),
                ("prompt_hash", models.CharField(max_length=12)),
                ("model", models.CharField(max_length=160)),
                ("provider", models.CharField(max_length=40)),
                ("request", models.JSONField()),
                ("request_hash", models.CharField(max_length=64)),
                ("mends", models.CharField(blank=True, db_default="", default="", max_length=64)),
                (
                    "documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("ok", "ok"),
                            ("truncated", "truncated"),
                            ("refused", "refused"),
                            ("filtered", "filtered"),
                            ("empty", "empty"),
                            ("malformed", "malformed"),
                            ("wrong_schema", "wrong schema"),
                            ("timeout", "timeout"),
                            ("too_slow", "too slow"),
                            ("cut_off", "cut off"),
                            ("unreachable", "unreachable"),
                            ("server_error", "server error"),
                            ("rate_limited", "rate limited"),
                            ("key_refused", "key refused"),
                            ("model_missing", "model missing"),
                            ("rejected", "rejected"),
                            ("breaker_open", "breaker open"),
                            ("budget_spent", "budget spent"),
                            ("out_of_time", "out of time"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reply", models.TextField(blank=True)),
                (
                    "tool_calls",
                    models.JSONField(
                        blank=True, db_default=models.Value([], models.JSONField()), default=list
                    ),
                ),
                ("finish_reason", models.CharField(blank=True, max_length=20)),
                ("error", models.TextField(blank=True)),
                ("attempts", models.JSONField(blank=True, default=list)),
                ("input_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("output_tokens", models.PositiveIntegerField(blank=True, null=True)),
                ("cached_tokens", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "cost",
                    models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True),
                ),
                ("reusable", models.BooleanField(default=True)),
                ("seconds", models.FloatField(default=0.0)),
                ("first_token_seconds", models.FloatField(blank=True, null=True)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "cached_from",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to="agents.modelcall",
                    ),
                ),
                (
                    "envelope",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="model_calls",
                        to="agents.envelope",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("cached_from__isnull", True), ("outcome", "ok"), ("reusable", True)
                        ),
                        fields=["request_hash", "owner", "-created"],
                        name="model_call_to_use_again",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("cached_from__isnull", True),
                            ("outcome", "ok"),
                            ("reusable", True),
                            models.Q(("mends", ""), _negated=True),
                        ),
                        fields=["mends", "owner", "-created"],
                        name="model_call_mended",
                    ),
                    models.Index(fields=["created", "owner"], name="model_call_by_day_and_owner"),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("reusable", True)),
                        fields=["documents"],
                        name="model_call_by_document",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subject", "number"), name="model_call_once_per_number_of_a_subject"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Step",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("batch", models.PositiveIntegerField()),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("manager", "manager"),
                            ("command", "command"),
                            ("lang", "lang"),
                            ("translation", "translation"),
                            ("essence", "essence"),
                            ("guardrails", "guardrails"),
                            ("router", "router"),
                            ("search", "search"),
                            ("evaluator", "evaluator"),
                            ("augmentation", "augmentation"),
                            ("response", "response"),
                            ("quality", "quality"),
                            ("clarification", "clarification"),
                            ("memory", "memory"),
                            ("fallback", "fallback"),
                        ],
                        max_length=16,
                    ),
                ),
                ("stage", models.CharField(max_length=16)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("ready", "Ready"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("quarantined", "Quarantined"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="ready",
                        max_length=12,
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(default=0)),
                ("place", models.PositiveIntegerField(db_default=0, default=0)),
                ("available_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("rung_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("lease_token", models.UUIDField(blank=True, null=True)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("mode", models.CharField(blank=True, db_default="", default="", max_length=10)),
                ("degraded", models.TextField(blank=True, db_default="", default="")),
                ("output", models.JSONField(default=dict)),
                ("error", models.TextField(blank=True)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("started", models.DateTimeField(blank=True, null=True)),
                ("ended", models.DateTimeField(blank=True, null=True)),
                (
                    "envelope",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="agents.envelope",
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("status__in", ("ready", "running"))),
                        fields=["available_at"],
                        name="step_open_by_time",
                    ),
                    models.Index(
                        condition=models.Q(("status", "ready")),
                        fields=["role", "place", "available_at"],
                        name="step_ready_in_order",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("envelope", "number"), name="step_once_per_number_of_an_envelope"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "running"), _negated=True),
                            ("lease_token__isnull", False),
                            _connector="OR",
                        ),
                        name="step_running_only_under_a_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended__isnull", True),
                            ("started__isnull", True),
                            ("ended__gte", models.F("started")),
                            _connector="OR",
                        ),
                        name="step_ends_after_it_starts",
                    ),
                ],
            },
        ),
    ]
