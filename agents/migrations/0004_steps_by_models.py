"""Steps by models: a claim tells the turn's deadline, a finish whether a model did the work."""

from importlib import import_module

from django.db import migrations

before = import_module("agents.migrations.0002_step_functions")

CLAIM = before.CLAIM.replace(
    "process_count integer, stream text)",
    "process_count integer, stream text, deadline timestamptz)",
).replace(
    "envelope.process_count, envelope.target_list::text;",
    "envelope.process_count, envelope.target_list::text, envelope.deadline;",
)
FINISH = before.FINISH.replace(
    "next_roles text[], next_stage text\n",
    "next_roles text[], next_stage text,\n    by_mode text, why_degraded text\n",
).replace("output = new_output\n", "output = new_output, mode = by_mode, degraded = why_degraded\n")
DROP_CLAIM = "DROP FUNCTION agents_claim;"
DROP_FINISH = "DROP FUNCTION agents_finish;"


class Migration(migrations.Migration):
    """Both functions again, each with what it tells besides."""

    dependencies = [("agents", "0003_model_calls")]
    operations = [
        migrations.RunSQL(DROP_CLAIM + CLAIM, DROP_CLAIM + before.CLAIM),
        migrations.RunSQL(DROP_FINISH + FINISH, DROP_FINISH + before.FINISH),
    ]
