import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0004_vectors_of_levels"),
    ]

    operations = [
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
            ],
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
            ],
            options={
                "ordering": ("collection", "id"),
            },
        ),
        migrations.AddField(
            model_name="collection",
            name="embedding_model",
            field=models.CharField(
                default="all-MiniLM-L6-v2",
                editable=False,
                help_text="Whose vectors are searched; `reindex` changes it.",
                max_length=100,
            ),
        ),
        migrations.AddField(
            model_name="calibration",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="calibrations",
                to="knowledge.collection",
            ),
        ),
        migrations.AddField(
            model_name="goldenquestion",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="golden_questions",
                to="knowledge.collection",
            ),
        ),
        migrations.AddConstraint(
            model_name="calibration",
            constraint=models.UniqueConstraint(
                fields=("collection", "model"), name="calibration_once_per_model"
            ),
        ),
        migrations.AddConstraint(
            model_name="goldenquestion",
            constraint=models.UniqueConstraint(
                fields=("collection", "question"), name="golden_question_once_per_collection"
            ),
        ),
    ]
