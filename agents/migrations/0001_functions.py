"""The functions that claim and finish steps and end turns.

They come before the tables they speak of: PostgreSQL looks at those when a function is called.
"""

from pathlib import Path

from django.db import migrations

FUNCTIONS = Path(__file__).with_suffix(".sql").read_text()


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(FUNCTIONS, "DROP FUNCTION agents_claim_ready, agents_finish, agents_end"),
    ]
