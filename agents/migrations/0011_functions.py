"""What agents wrote that worked at the same time is brought together by reducers."""

from pathlib import Path

from django.db import migrations

FUNCTIONS = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
BEFORE = Path(__file__).with_name("0008_functions.sql").read_text(encoding="utf-8")


class Migration(migrations.Migration):
    dependencies = (("agents", "0010_analysis_roles"),)
    operations = (
        # It has a parameter more.
        migrations.RunSQL("DROP FUNCTION agents_finish", migrations.RunSQL.noop),
        migrations.RunSQL(FUNCTIONS, f"DROP FUNCTION agents_finish, agents_reduce;\n{BEFORE}"),
    )
