import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0005_what_is_known_of_collections"),
    ]

    operations = [
        migrations.CreateModel(
            name="Copy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(max_length=1000)),
                ("origin", models.CharField(max_length=1000)),
                ("sha1", models.CharField(max_length=40)),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ("document", "source"),
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("collection", models.CharField(max_length=1000)),
                ("by", models.CharField(blank=True, help_text="Who asked for it.", max_length=150)),
                ("reason", models.CharField(blank=True, max_length=200)),
                ("documents", models.JSONField(default=list)),
                ("removed", models.JSONField(default=dict)),
                ("answers", models.JSONField(default=list)),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ("-created",),
            },
        ),
        migrations.CreateModel(
            name="Reliance",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("turn", models.UUIDField()),
                ("document", models.CharField(max_length=32)),
                ("version", models.PositiveIntegerField()),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Version",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("title", models.CharField(max_length=500)),
                ("content", models.TextField()),
                ("sha1", models.CharField(max_length=40)),
                ("created", models.DateTimeField(help_text="When this version was taken in.")),
                (
                    "replaced",
                    models.DateTimeField(
                        default=django.utils.timezone.now, help_text="When the next one was."
                    ),
                ),
            ],
            options={
                "ordering": ("document", "-number"),
            },
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "sha1"], name="document_by_digest"),
        ),
        migrations.AddField(
            model_name="copy",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="copies",
                to="knowledge.collection",
            ),
        ),
        migrations.AddField(
            model_name="copy",
            name="document",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="copies",
                to="knowledge.document",
            ),
        ),
        migrations.AddIndex(
            model_name="reliance",
            index=models.Index(fields=["document", "version"], name="reliance_by_document"),
        ),
        migrations.AddConstraint(
            model_name="reliance",
            constraint=models.UniqueConstraint(
                fields=("turn", "document", "version"), name="reliance_once_per_answer"
            ),
        ),
        migrations.AddField(
            model_name="version",
            name="document",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="versions",
                to="knowledge.document",
            ),
        ),
        migrations.AddConstraint(
            model_name="copy",
            constraint=models.UniqueConstraint(
                fields=("collection", "source"), name="copy_once_per_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="version",
            constraint=models.UniqueConstraint(
                fields=("document", "number"), name="version_once_per_number"
            ),
        ),
    ]
