"""Messages can be taken back."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("conversations", "0008_staff_groups")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="taken_back",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
