"""Steps faster: a crowd claimed and finished at once, an end in one round trip, one sync a turn.

Only a turn's end waits for the disk. What a crash of PostgreSQL takes back of a turn under way is
done again from the journal, where every reply of a model is on disk before it is used.
"""

from importlib import import_module

from django.db import migrations

before = import_module("agents.migrations.0004_steps_by_models")

CLAIM_READY = """
CREATE FUNCTION agents_claim_ready(
    of_role text, most integer, by_worker text, lease interval, attempts integer
) RETURNS TABLE (envelope uuid, number integer, token uuid, attempt integer, payload text,
                 process_count integer, stream text, deadline timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL synchronous_commit TO OFF;
    RETURN QUERY
    WITH due AS (
        SELECT step.id
          FROM agents_step AS step
          JOIN agents_envelope AS turn ON turn.id = step.envelope_id
         WHERE step.role = of_role AND step.status = 'ready' AND step.available_at <= now()
           AND step.attempt < attempts AND turn.status = 'running' AND turn.deadline > now()
         ORDER BY step.available_at
         LIMIT most
           FOR UPDATE OF step SKIP LOCKED
    )
    UPDATE agents_step AS step
       SET status = 'running', attempt = step.attempt + 1, lease_token = gen_random_uuid(),
           lease_until = now() + lease, worker = by_worker, started = now(), ended = NULL
      FROM due, agents_envelope AS turn
     WHERE step.id = due.id AND turn.id = step.envelope_id
    RETURNING turn.id, step.number::integer, step.lease_token, step.attempt::integer,
              turn.payload::text, turn.process_count, turn.target_list::text, turn.deadline;
END $$;
"""
FINISH = before.FINISH.replace(
    "    -- The envelope is locked first",
    "    -- A crash of the database may take it back: it is done again.\n"
    "    SET LOCAL synchronous_commit TO OFF;\n"
    "    -- The envelope is locked first",
)
END = """
CREATE FUNCTION agents_end(
    of_envelope uuid, with_status text, with_error text, last_payload jsonb
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    worked text;
BEGIN
    -- What a user was told must not be taken back, whatever this transaction did before.
    SET LOCAL synchronous_commit TO DEFAULT;
    UPDATE agents_step
       SET status = 'cancelled', lease_token = NULL, lease_until = NULL
     WHERE envelope_id = of_envelope AND status IN ('ready', 'running');
    -- Whether models did the turn's work, the roles' own rules, or some of each.
    SELECT CASE count(DISTINCT mode) WHEN 0 THEN 'extractive' WHEN 1 THEN min(mode)
                ELSE 'mixed' END
      INTO worked FROM agents_step WHERE envelope_id = of_envelope AND mode <> '';
    UPDATE agents_envelope
       SET status = with_status, error_id = with_error, target_role = '[]', update_ts = now(),
           payload = last_payload || jsonb_build_object('mode', worked)
     WHERE id = of_envelope;
    RETURN worked;
END $$;
"""
DROP_FINISH = "DROP FUNCTION agents_finish;"


class Migration(migrations.Migration):
    """Two functions more, and one that no longer waits for the disk."""

    dependencies = [("agents", "0004_steps_by_models")]
    operations = [
        migrations.RunSQL(CLAIM_READY, "DROP FUNCTION agents_claim_ready"),
        migrations.RunSQL(DROP_FINISH + FINISH, DROP_FINISH + before.FINISH),
        migrations.RunSQL(END, "DROP FUNCTION agents_end"),
    ]
