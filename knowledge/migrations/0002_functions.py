"""The functions that take words out of texts."""

from pathlib import Path

from django.db import migrations

FUNCTIONS = Path(__file__).with_suffix(".sql").read_text()


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0001_vector_extension")]
    operations = [
        migrations.RunSQL(
            FUNCTIONS, "DROP FUNCTION knowledge_words, knowledge_bigrams, knowledge_plain"
        ),
    ]
