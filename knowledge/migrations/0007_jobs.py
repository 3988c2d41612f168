import django.db.models.deletion
import django.utils.timezone
import pgvector.django.halfvec
from django.db import migrations, models

# What had been uploaded one by one becomes a job of one item.
ITEMS = """
INSERT INTO knowledge_item
    (ingest_id, number, kind, origin, location, body, sha1, status, reason, documents, counts,
     chunks, warnings, gone, updated)
SELECT id, 1, 'upload', name, '', body, '',
    CASE status WHEN 'done' THEN 'changed' WHEN 'failed' THEN 'skipped' ELSE 'waiting' END,
    CASE status WHEN 'failed' THEN error ELSE '' END, 0, '{}', 0, '[]', '[]', updated
FROM knowledge_ingest
"""


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0006_versions_and_receipts"),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="starts",
            field=models.JSONField(blank=True, default=list, editable=False),
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("file", "File"),
                            ("url", "Url"),
                            ("upload", "Upload"),
                            ("stored", "Stored"),
                        ],
                        max_length=16,
                    ),
                ),
                ("origin", models.CharField(max_length=1000)),
                (
                    "location",
                    models.TextField(blank=True, help_text="Path on the server, URL, or document."),
                ),
                (
                    "body",
                    models.BinaryField(help_text="Of an upload, until it is stored.", null=True),
                ),
                (
                    "sha1",
                    models.CharField(
                        blank=True, help_text="Of the bytes that were read.", max_length=40
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("new", "New"),
                            ("changed", "Changed"),
                            ("unchanged", "Unchanged"),
                            ("duplicate", "Duplicate"),
                            ("listed", "Listed"),
                            ("skipped", "Skipped"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True, help_text="Why it was skipped, or what it is a copy of."
                    ),
                ),
                (
                    "documents",
                    models.PositiveIntegerField(
                        default=0, help_text="Finished, in their order."
                    ),
                ),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("chunks", models.PositiveIntegerField(default=0, help_text="Written.")),
                ("warnings", models.JSONField(blank=True, default=list)),
                ("gone", models.JSONField(blank=True, default=list)),
                (
                    "updated",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ("ingest", "number"),
            },
        ),
        migrations.CreateModel(
            name="Encoded",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "sha1",
                    models.CharField(
                        help_text="Of the text as the model was given it.", max_length=40
                    ),
                ),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
            ],
        ),
        migrations.AddField(
            model_name="encoded",
            name="ingest",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="encoded",
                to="knowledge.ingest",
            ),
        ),
        migrations.AddConstraint(
            model_name="encoded",
            constraint=models.UniqueConstraint(
                fields=("ingest", "sha1"), name="encoded_once_per_text"
            ),
        ),
        migrations.AddField(
            model_name="ingest",
            name="token",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="ingest",
            name="worker",
            field=models.CharField(blank=True, editable=False, max_length=200),
        ),
        migrations.AlterField(
            model_name="ingest",
            name="attempts",
            field=models.PositiveIntegerField(
                default=0, help_text="Since the last progress."
            ),
        ),
        migrations.AddField(
            model_name="ingest",
            name="cancelling",
            field=models.BooleanField(default=False, help_text="Somebody asked to stop it."),
        ),
        migrations.AddField(
            model_name="ingest",
            name="current",
            field=models.CharField(blank=True, help_text="The item at hand.", max_length=1000),
        ),
        migrations.AddField(
            model_name="ingest",
            name="ended",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="ingest",
            name="options",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="ingest",
            name="started",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="ingest",
            name="name",
            field=models.CharField(
                help_text="What was asked for, in a few words.", max_length=1000
            ),
        ),
        migrations.AlterField(
            model_name="ingest",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("running", "Running"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="queued",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="ingest",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="items",
                to="knowledge.ingest",
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(
                fields=("ingest", "number"), name="item_once_per_number"
            ),
        ),
        migrations.RunSQL(ITEMS, migrations.RunSQL.noop),
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="ingest",
            name="body",
        ),
    ]
