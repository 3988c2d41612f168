from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0001_conversations"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="summarised_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
