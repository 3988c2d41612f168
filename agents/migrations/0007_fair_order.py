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
            SELECT whole.status, whole.deadline FROM agents_envelope AS whole
             WHERE whole.id = step.envelope_id OFFSET 0
          ) AS turn ON true"""
CLAIM_READY = (
    # In the order of its index, however few steps there are when it is planned: once there are
    # many, to sort them all for one of them takes longer than everything else.
    before.CLAIM_READY.replace(
        "LANGUAGE plpgsql AS", "LANGUAGE plpgsql SET enable_sort = off SET enable_seqscan = off AS"
    )
    .replace("BEGIN\n", "DECLARE\n    moment timestamptz;\nBEGIN\n")
    .replace("    RETURN QUERY\n", ALONE + "    RETURN QUERY\n")
    .replace("step.available_at <= now()", "step.available_at <= moment")
    .replace("JOIN agents_envelope AS turn ON turn.id = step.envelope_id", TURN)
    .replace("ORDER BY step.available_at", "ORDER BY step.place, step.available_at")
)
FINISH = (
    before.FINISH.replace(
        "RETURNING step.batch, step.stage,", "RETURNING step.batch, step.stage, step.place,"
    )
    .replace("worker, output, error, created)", "worker, output, error, created, place)")
    .replace("'', '{}', '', now()\n", "'', '{}', '', now(), done.place\n")
)
DROP_CLAIM = "DROP FUNCTION agents_claim_ready;"
DROP_FINISH = "DROP FUNCTION agents_finish;"


class Migration(migrations.Migration):
    """A step's place in its user's line, handed on from step to step, and claims in that order."""

    dependencies = [("agents", "0006_what_calls_quoted")]
    operations = [
        migrations.AddField(
            model_name="step",
            name="place",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name="step",
            index=models.Index(
                condition=models.Q(("status", "ready")),
                fields=["role", "place", "available_at"],
                name="step_ready_in_order",
            ),
        ),
        migrations.RunSQL(DROP_CLAIM + CLAIM_READY, DROP_CLAIM + before.CLAIM_READY),
        migrations.RunSQL(DROP_FINISH + FINISH, DROP_FINISH + before.FINISH),
    ]
