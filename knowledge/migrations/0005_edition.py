"""Documents and their versions with the version that they name themselves."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0004_postings")]

    operations = [
        migrations.AddField(
            model_name="document",
            name="edition",
            field=models.CharField(
                blank=True, help_text="Its own version, as it names it.", max_length=100
            ),
        ),
        migrations.AddField(
            model_name="version",
            name="edition",
            field=models.CharField(blank=True, max_length=100),
        ),
    ]
