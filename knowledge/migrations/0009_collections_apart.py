from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knowledge", "0008_postings"),
    ]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="only_by_name",
            field=models.BooleanField(
                default=False,
                help_text="Searched only where it is named: by no question that is asked of everything.",
            ),
        ),
    ]
