"""Keys for sites: public, and good for nothing but chatting on their pages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("conversations", "0009_retakes")]

    operations = [
        migrations.AddField(
            model_name="grant",
            name="sites",
            field=models.JSONField(
                blank=True, db_default=models.Value([], models.JSONField()), default=list
            ),
        ),
        migrations.AddField(
            model_name="grant",
            name="questions",
            field=models.PositiveIntegerField(db_default=120, default=120),
        ),
        migrations.AddField(
            model_name="grant",
            name="questions_of_a_visitor",
            field=models.PositiveIntegerField(db_default=10, default=10),
        ),
    ]
