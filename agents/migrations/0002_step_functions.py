"""Claim and finish a step inside the database: one round trip each, planned once per connection.

A turn is twenty steps, and these two are most of what durability costs (`bench hops`). The text of
a function may not change any more once released: a later migration replaces it.
"""

from django.db import migrations

CLAIM = """
CREATE FUNCTION agents_claim(
    of_envelope uuid, of_number integer, new_token uuid, by_worker text,
    lease interval, attempts integer
) RETURNS TABLE (role text, attempt integer, payload text, process_count integer, stream text)
LANGUAGE plpgsql AS $$
BEGIN
    -- Losing a claim in a crash of the database is harmless: the step is ready again.
    SET LOCAL synchronous_commit TO OFF;
    RETURN QUERY
    UPDATE agents_step AS step
       SET status = 'running', attempt = step.attempt + 1, lease_token = new_token,
           lease_until = now() + lease, worker = by_worker, started = now(), ended = NULL
      FROM agents_envelope AS envelope
     WHERE step.envelope_id = of_envelope AND step.number = of_number
       AND envelope.id = of_envelope AND envelope.status = 'running'
       AND envelope.deadline > now() AND step.attempt < attempts
       AND (step.status = 'ready' AND step.available_at <= now()
            OR step.status = 'running' AND step.lease_until < now())
    RETURNING step.role::text, step.attempt::integer, envelope.payload::text,
              envelope.process_count, envelope.target_list::text;
END $$;
"""

FINISH = """
CREATE FUNCTION agents_finish(
    of_envelope uuid, of_number integer, held_token uuid, by_role text, new_output jsonb,
    kept jsonb, asked jsonb, forgotten text[], next_roles text[], next_stage text
) RETURNS TABLE (seconds float8, added jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    done record;
    first_number integer;
BEGIN
    -- The envelope is locked first and looked at afterwards: of siblings that finish at the same
    -- time the second sees the first done, and exactly one of them finds no sibling open.
    PERFORM 1 FROM agents_envelope WHERE id = of_envelope AND status = 'running' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE agents_step AS step
       SET status = 'done', ended = clock_timestamp(), lease_until = NULL, error = '',
           output = new_output
     WHERE step.envelope_id = of_envelope AND step.number = of_number
       AND step.lease_token = held_token AND step.status = 'running'
    RETURNING step.batch, step.stage, extract(epoch FROM step.ended - step.started)::float8 AS took
      INTO done;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- An agent names nobody: the last of its siblings calls the manager.
    IF next_roles IS NULL THEN
        next_roles := CASE WHEN EXISTS (
            SELECT 1 FROM agents_step AS sibling
             WHERE sibling.envelope_id = of_envelope AND sibling.batch = done.batch
               AND sibling.status IN ('ready', 'running')
        ) THEN '{}' ELSE ARRAY['manager'] END;
    END IF;
    UPDATE agents_envelope AS envelope
       SET payload = (payload - forgotten) || kept || jsonb_build_object(
               'clarification_requests',
               (coalesce(payload -> 'clarification_requests', '{}') - by_role) || asked),
           version = version + 1, process_count = process_count + 1,
           total_processing_time = total_processing_time + done.took,
           sender_role = by_role, update_ts = now(),
           step_count = step_count + cardinality(next_roles),
           target_role = CASE WHEN cardinality(next_roles) > 0 THEN to_jsonb(next_roles)
                              ELSE target_role END
     WHERE envelope.id = of_envelope
    RETURNING step_count - cardinality(next_roles) INTO first_number;
    INSERT INTO agents_step (envelope_id, number, batch, role, stage, status, attempt,
                             available_at, rung_at, worker, output, error, created)
    SELECT of_envelope, first_number + place, of_number, named.role,
           coalesce(next_stage, done.stage), 'ready', 0, now(), now(), '', '{}', '', now()
      FROM unnest(next_roles) WITH ORDINALITY AS named(role, place);
    RETURN QUERY
    SELECT done.took,
           (SELECT jsonb_agg(jsonb_build_array(first_number + place, named.role) ORDER BY place)
              FROM unnest(next_roles) WITH ORDINALITY AS named(role, place));
END $$;
"""


class Migration(migrations.Migration):
    """The two functions a step lives by."""

    dependencies = [("agents", "0001_turns")]
    operations = [
        migrations.RunSQL(CLAIM, "DROP FUNCTION agents_claim"),
        migrations.RunSQL(FINISH, "DROP FUNCTION agents_finish"),
    ]
