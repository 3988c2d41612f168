"""The span of who asked, with the turn."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0008_functions")]
    operations = [
        migrations.AddField(
            "envelope",
            "traceparent",
            models.CharField(blank=True, db_default="", default="", max_length=55),
        ),
    ]
