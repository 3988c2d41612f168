"""What is counted of turns and calls, ids of replies, and the conversation of a claimed step."""

from pathlib import Path

import django.contrib.postgres.fields
from django.db import migrations, models

FUNCTIONS = Path(__file__).with_suffix(".sql").read_text()
# It returns one column more than before.
DROP = "DROP FUNCTION agents_claim_ready(text, integer, text, interval, integer);"


def counted(model: str) -> list[migrations.operations.base.Operation]:
    """A column that is true in the rows there are, and false in those that come."""
    return [
        migrations.AddField(model, "counted", models.BooleanField(default=False, db_default=True)),
        migrations.AlterField(
            model, "counted", models.BooleanField(default=False, db_default=False)
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_with_staff")]
    operations = [
        *counted("envelope"),
        *counted("modelcall"),
        migrations.AddField(
            "modelcall",
            "response_id",
            models.CharField(blank=True, db_default="", default="", max_length=100),
        ),
        migrations.AddIndex(
            "envelope",
            models.Index(
                fields=["create_ts"],
                condition=models.Q(counted=False),
                name="envelope_to_count",
            ),
        ),
        migrations.AddIndex(
            "modelcall",
            models.Index(
                fields=["created"],
                condition=models.Q(counted=False),
                name="model_call_to_count",
            ),
        ),
        migrations.CreateModel(
            name="Tally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("metric", models.CharField(max_length=60)),
                ("labels", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), size=None)),
                ("total", models.FloatField(default=0.0)),
                ("buckets", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
            ],
            options={
                "verbose_name_plural": "tallies",
                "ordering": ("metric", "labels"),
                "constraints": [models.UniqueConstraint(fields=("metric", "labels"), name="tally_once")],
            },
        ),
        migrations.RunSQL(DROP + FUNCTIONS, migrations.RunSQL.noop),
    ]
