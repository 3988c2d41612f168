"""Fair order: a user's only turn under way is served before the second of anybody else."""

from importlib import import_module

from django.db import migrations, models

before = import_module("agents.migrations.0005_steps_faster")

# One claim of a role after another, each with a look of its own: of two that look at the same time
# one could take the step that the other's bell rang for, and leave it nothing that it has seen.
# What became due while it waited for its turn is due, so now(), when it began, is too early.
ALONE = """    PERFORM pg_advisory_xact_lock(219205160, hashtext(of_role));
    moment := clock_timestamp();
"""
# The fence makes it find turns by their key: the planner takes open steps for fewer than they are.
TURN = """JOIN LATERAL (
            SELECT whole.status, whole.deadline, whole.place FROM agents_envelope AS whole
             WHERE whole.id = step.envelope_id OFFSET 0
          ) AS turn ON true"""
CLAIM_READY = (
    before.CLAIM_READY.replace("BEGIN\n", "DECLARE\n    moment timestamptz;\nBEGIN\n")
    .replace("    RETURN QUERY\n", ALONE + "    RETURN QUERY\n")
    .replace("step.available_at <= now()", "step.available_at <= moment")
    .replace("JOIN agents_envelope AS turn ON turn.id = step.envelope_id", TURN)
    .replace("ORDER BY step.available_at", "ORDER BY turn.place, step.available_at")
)
DROP = "DROP FUNCTION agents_claim_ready;"


class Migration(migrations.Migration):
    """A turn's place in its user's line, and the order of claims by it."""

    dependencies = [("agents", "0006_what_calls_quoted")]
    operations = [
        migrations.AddField(
            model_name="envelope",
            name="place",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.RunSQL(DROP + CLAIM_READY, DROP + before.CLAIM_READY),
    ]
