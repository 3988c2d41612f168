import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("agents", "0002_tables"),
        ("knowledge", "0003_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Conversation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("session", models.CharField(max_length=64)),
                ("user_id", models.CharField(blank=True, max_length=128)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("running", "Running"),
                            ("awaiting_user", "Awaiting User"),
                        ],
                        default="open",
                        max_length=16,
                    ),
                ),
                ("language_preference", models.CharField(blank=True, max_length=8)),
                ("summary", models.TextField(blank=True)),
                ("summarised_until", models.DateTimeField(blank=True, null=True)),
                ("topic", models.TextField(blank=True)),
                ("facts", models.JSONField(blank=True, default=list)),
                ("last_agent", models.CharField(blank=True, max_length=16)),
                ("context_flags", models.JSONField(blank=True, default=dict)),
                ("open_clarification", models.JSONField(blank=True, null=True)),
                ("clarification_rounds", models.PositiveSmallIntegerField(default=0)),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("collections", models.ManyToManyField(blank=True, to="knowledge.collection")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-updated",),
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("user", "User"), ("assistant", "Assistant"), ("staff", "Staff")],
                        max_length=10,
                    ),
                ),
                ("text", models.TextField()),
                ("created", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="conversations.conversation",
                    ),
                ),
                (
                    "turn",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="agents.envelope",
                    ),
                ),
            ],
            options={
                "ordering": ("created",),
            },
        ),
        migrations.AddConstraint(
            model_name="conversation",
            constraint=models.UniqueConstraint(
                fields=("owner", "session"),
                name="conversation_once_per_session_of_an_owner",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("turn", "role"), name="message_once_per_turn_and_role"
            ),
        ),
    ]
