import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.utils.timezone
import pgvector.django.halfvec
import pgvector.django.indexes
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("knowledge", "0002_functions"),
    ]

    operations = [
        migrations.CreateModel(
            name="Collection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=63,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[a-z0-9][a-z0-9_-]{0,62}\\Z", "Use a-z, 0-9, '-' and '_'."
                            )
                        ],
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200)),
                ("description", models.TextField(blank=True)),
                (
                    "embedding_model",
                    models.CharField(
                        default="all-MiniLM-L6-v2",
                        editable=False,
                        help_text="Whose vectors are searched; `reindex` changes it.",
                        max_length=100,
                    ),
                ),
                (
                    "only_by_name",
                    models.BooleanField(
                        default=False,
                        help_text="Searched only where it is named: by no question that is asked of everything.",
                    ),
                ),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
            ],
            options={
                "ordering": ("name",),
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
            name="Census",
            fields=[
                (
                    "collection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="census",
                        serialize=False,
                        to="knowledge.collection",
                    ),
                ),
                (
                    "configs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), default=list, size=None
                    ),
                ),
                ("chunks", models.PositiveIntegerField(null=True)),
                ("newest", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                (
                    "collection",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="knowledge.collection",
                    ),
                ),
                ("number", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="CommonTerm",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "collection",
                        "term",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("term", models.TextField()),
                ("chunks", models.PositiveIntegerField()),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="knowledge.collection",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Document",
            fields=[
                (
                    "id",
                    models.CharField(
                        editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                (
                    "source",
                    models.CharField(help_text="Path or URL shown to the reader.", max_length=1000),
                ),
                (
                    "origin",
                    models.CharField(
                        help_text="File it was read from: name of the ingested root, then path.",
                        max_length=1000,
                    ),
                ),
                ("title", models.CharField(max_length=500)),
                ("crumbs", models.JSONField(blank=True, default=list)),
                ("description", models.TextField(blank=True)),
                ("content", models.TextField(help_text="The whole text as normalised Markdown.")),
                ("summary", models.TextField(blank=True)),
                ("keypoints", models.JSONField(blank=True, default=list)),
                ("keywords", models.JSONField(blank=True, default=list)),
                ("version", models.PositiveIntegerField(default=1)),
                ("last_updated", models.DateField(blank=True, null=True)),
                ("audience", models.CharField(blank=True, max_length=100)),
                ("language", models.CharField(default="en", max_length=16)),
                ("config", models.CharField(default="english", editable=False, max_length=63)),
                ("starts", models.JSONField(blank=True, default=list, editable=False)),
                (
                    "sha1",
                    models.CharField(help_text="Of the bytes it was read from.", max_length=40),
                ),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "updated",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="documents",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "ordering": ("collection", "source"),
            },
        ),
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
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="copies",
                        to="knowledge.collection",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="copies",
                        to="knowledge.document",
                    ),
                ),
            ],
            options={
                "ordering": ("document", "source"),
            },
        ),
        migrations.CreateModel(
            name="Chunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("keywords", models.JSONField(blank=True, default=list)),
                (
                    "page",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Page or slide it begins on, where there are any.",
                        null=True,
                    ),
                ),
                ("sha1", models.CharField(max_length=40)),
                (
                    "tokens",
                    models.PositiveIntegerField(
                        help_text="As the embedding model sees it, with headings."
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunks",
                        to="knowledge.document",
                    ),
                ),
            ],
            options={
                "ordering": ("document", "number"),
            },
        ),
        migrations.CreateModel(
            name="DocumentVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.collection",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vectors",
                        to="knowledge.document",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Entity",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("key", models.CharField(max_length=200)),
                ("kind", models.CharField(max_length=40)),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entities",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entities",
                "ordering": ("name", "kind"),
            },
        ),
        migrations.CreateModel(
            name="EntityName",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("key", models.CharField(max_length=200)),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.document",
                    ),
                ),
                (
                    "entity",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="names",
                        to="knowledge.entity",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="GoldenQuestion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("question", models.TextField()),
                (
                    "sources",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Sources of the documents that answer it; [] for none.",
                    ),
                ),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="golden_questions",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "ordering": ("collection", "id"),
            },
        ),
        migrations.CreateModel(
            name="Ingest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="What was asked for, in a few words.", max_length=1000
                    ),
                ),
                (
                    "status",
                    models.CharField(
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
                ("options", models.JSONField(blank=True, default=dict)),
                (
                    "current",
                    models.CharField(blank=True, help_text="The item at hand.", max_length=1000),
                ),
                (
                    "cancelling",
                    models.BooleanField(default=False, help_text="Somebody asked to stop it."),
                ),
                ("report", models.JSONField(blank=True, default=dict)),
                ("error", models.TextField(blank=True)),
                (
                    "attempts",
                    models.PositiveIntegerField(default=0, help_text="Since the last progress."),
                ),
                ("token", models.UUIDField(editable=False, null=True)),
                ("worker", models.CharField(blank=True, editable=False, max_length=200)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                ("started", models.DateTimeField(blank=True, null=True)),
                ("ended", models.DateTimeField(blank=True, null=True)),
                (
                    "updated",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ingests",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "ordering": ("-created",),
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
                (
                    "ingest",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="encoded",
                        to="knowledge.ingest",
                    ),
                ),
            ],
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
                    models.PositiveIntegerField(default=0, help_text="Finished, in their order."),
                ),
                ("counts", models.JSONField(blank=True, default=dict)),
                ("chunks", models.PositiveIntegerField(default=0, help_text="Written.")),
                ("warnings", models.JSONField(blank=True, default=list)),
                ("gone", models.JSONField(blank=True, default=list)),
                (
                    "updated",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "ingest",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="items",
                        to="knowledge.ingest",
                    ),
                ),
            ],
            options={
                "ordering": ("ingest", "number"),
            },
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "chunk",
                        "term",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("collection", models.IntegerField()),
                ("impact", models.FloatField()),
                ("term", models.TextField()),
                (
                    "chunk",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="knowledge.chunk",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Relation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("predicate", models.CharField(max_length=80)),
                ("valid_from", models.DateField(blank=True, null=True)),
                ("valid_to", models.DateField(blank=True, null=True)),
                (
                    "chunk",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.chunk",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="relations",
                        to="knowledge.document",
                    ),
                ),
                (
                    "object",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statements_about",
                        to="knowledge.entity",
                    ),
                ),
                (
                    "subject",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="statements",
                        to="knowledge.entity",
                    ),
                ),
            ],
            options={
                "ordering": ("document", "id"),
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
            options={
                "indexes": [
                    models.Index(fields=["document", "version"], name="reliance_by_document")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("turn", "document", "version"), name="reliance_once_per_answer"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Section",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("path", models.JSONField(blank=True, default=list)),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sections",
                        to="knowledge.document",
                    ),
                ),
            ],
            options={
                "ordering": ("document", "number"),
            },
        ),
        migrations.AddField(
            model_name="chunk",
            name="section",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chunks",
                to="knowledge.section",
            ),
        ),
        migrations.CreateModel(
            name="SectionVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.collection",
                    ),
                ),
                (
                    "section",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vectors",
                        to="knowledge.section",
                    ),
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
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="knowledge.document",
                    ),
                ),
            ],
            options={
                "ordering": ("document", "-number"),
            },
        ),
        migrations.CreateModel(
            name="Calibration",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("threshold", models.FloatField()),
                ("report", models.JSONField(blank=True, default=dict)),
                (
                    "created",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calibrations",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("collection", "model"), name="calibration_once_per_model"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ChunkVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("model", models.CharField(max_length=100)),
                ("embedding", pgvector.django.halfvec.HalfVectorField()),
                (
                    "chunk",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="vectors",
                        to="knowledge.chunk",
                    ),
                ),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="knowledge.collection",
                    ),
                ),
            ],
            options={
                "indexes": [
                    pgvector.django.indexes.HnswIndex(
                        django.contrib.postgres.indexes.OpClass(
                            django.db.models.functions.comparison.Cast(
                                "embedding", pgvector.django.halfvec.HalfVectorField(dimensions=384)
                            ),
                            name="halfvec_cosine_ops",
                        ),
                        condition=models.Q(("model", "all-MiniLM-L6-v2")),
                        ef_construction=128,
                        name="chunk_by_cosine_minilm",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("chunk", "model"), name="chunk_vector_once_per_model"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "origin"], name="document_by_origin"),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["collection", "sha1"], name="document_by_digest"),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(
                fields=("collection", "source"), name="document_once_per_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.CheckConstraint(
                condition=models.Q(("version__gte", 1)), name="document_version_starts_at_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="copy",
            constraint=models.UniqueConstraint(
                fields=("collection", "source"), name="copy_once_per_source"
            ),
        ),
        migrations.AddIndex(
            model_name="documentvector",
            index=pgvector.django.indexes.HnswIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.comparison.Cast(
                        "embedding", pgvector.django.halfvec.HalfVectorField(dimensions=384)
                    ),
                    name="halfvec_cosine_ops",
                ),
                condition=models.Q(("model", "all-MiniLM-L6-v2")),
                ef_construction=128,
                name="document_by_cosine_minilm",
            ),
        ),
        migrations.AddConstraint(
            model_name="documentvector",
            constraint=models.UniqueConstraint(
                fields=("document", "model"), name="document_vector_once_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="entity",
            constraint=models.UniqueConstraint(
                fields=("collection", "key", "kind"), name="entity_once_per_name_and_kind"
            ),
        ),
        migrations.AddIndex(
            model_name="entityname",
            index=models.Index(fields=["key"], name="entity_name_by_key"),
        ),
        migrations.AddConstraint(
            model_name="entityname",
            constraint=models.UniqueConstraint(
                fields=("entity", "document", "key"), name="entity_name_once_per_document"
            ),
        ),
        migrations.AddConstraint(
            model_name="goldenquestion",
            constraint=models.UniqueConstraint(
                fields=("collection", "question"), name="golden_question_once_per_collection"
            ),
        ),
        migrations.AddIndex(
            model_name="ingest",
            index=models.Index(
                condition=models.Q(("status__in", ("queued", "running"))),
                fields=["created"],
                name="ingest_still_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="encoded",
            constraint=models.UniqueConstraint(
                fields=("ingest", "sha1"), name="encoded_once_per_text"
            ),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(
                fields=("ingest", "number"), name="item_once_per_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="relation",
            constraint=models.UniqueConstraint(
                fields=("document", "subject", "predicate", "object", "valid_from", "valid_to"),
                name="relation_once_per_document",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="relation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("valid_from__isnull", True),
                    ("valid_to__isnull", True),
                    ("valid_from__lte", models.F("valid_to")),
                    _connector="OR",
                ),
                name="relation_holds_some_day",
            ),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.UniqueConstraint(
                fields=("document", "number"), name="section_once_per_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="chunk",
            constraint=models.UniqueConstraint(
                fields=("document", "number"), name="chunk_once_per_number"
            ),
        ),
        migrations.AddConstraint(
            model_name="chunk",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="chunk_number_starts_at_one"
            ),
        ),
        migrations.AddConstraint(
            model_name="sectionvector",
            constraint=models.UniqueConstraint(
                fields=("section", "model"), name="section_vector_once_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="version",
            constraint=models.UniqueConstraint(
                fields=("document", "number"), name="version_once_per_number"
            ),
        ),
    ]
