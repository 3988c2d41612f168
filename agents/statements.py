"""Statements: the two a step lives by, each several statements in one round trip.

Statements that are sent together are one transaction, and each of them sees what was committed
when it began. They are written by hand because a turn is twenty steps: through the ORM, finishing
one takes eight round trips, and they were most of what a turn cost (`bench hops`).
"""

# Losing a claim in a crash of the database is harmless: the step is ready again. So it does not
# wait for the disk.
CLAIM = """
SET LOCAL synchronous_commit TO OFF;
UPDATE agents_step AS step
   SET status = 'running', attempt = step.attempt + 1, lease_token = %(token)s,
       lease_until = now() + %(lease)s, worker = %(worker)s, started = now(), ended = NULL
  FROM agents_envelope AS envelope
 WHERE step.envelope_id = %(envelope)s AND step.number = %(number)s
   AND envelope.id = step.envelope_id AND envelope.status = 'running'
   AND envelope.deadline > now() AND step.attempt < %(attempts)s
   AND (step.status = 'ready' AND step.available_at <= now()
        OR step.status = 'running' AND step.lease_until < now())
RETURNING step.role, step.attempt, envelope.payload::text, envelope.process_count,
          envelope.target_list
"""

# The envelope is locked first and looked at afterwards: of siblings that finish at the same time,
# the second then sees the first done, and exactly one of them finds no sibling open. That one
# calls the manager (`to` is NULL). The manager itself names who comes next in `to`.
FINISH = """
SELECT 1 FROM agents_envelope WHERE id = %(envelope)s FOR UPDATE;
WITH done AS (
    UPDATE agents_step AS step
       SET status = 'done', ended = clock_timestamp(), lease_until = NULL, error = '',
           output = %(output)s::jsonb
      FROM agents_envelope AS envelope
     WHERE step.envelope_id = %(envelope)s AND step.number = %(number)s
       AND step.lease_token = %(token)s AND step.status = 'running'
       AND envelope.id = step.envelope_id AND envelope.status = 'running'
    RETURNING step.batch, step.stage, extract(epoch FROM step.ended - step.started) AS seconds
), next AS (
    SELECT coalesce(%(to)s::text[], CASE WHEN EXISTS (
               SELECT 1 FROM agents_step AS sibling, done
                WHERE sibling.envelope_id = %(envelope)s AND sibling.batch = done.batch
                  AND sibling.number <> %(number)s AND sibling.status IN ('ready', 'running')
           ) THEN '{}' ELSE ARRAY['manager'] END) AS roles
), changed AS (
    UPDATE agents_envelope AS envelope
       SET payload = (payload - %(forget)s::text[]) || %(kept)s::jsonb || jsonb_build_object(
               'clarification_requests',
               (coalesce(payload -> 'clarification_requests', '{}') - %(role)s::text)
                   || %(asked)s::jsonb),
           version = version + 1, process_count = process_count + 1,
           total_processing_time = total_processing_time + done.seconds,
           sender_role = %(role)s, update_ts = now(),
           step_count = step_count + cardinality(next.roles),
           target_role = CASE WHEN cardinality(next.roles) > 0 THEN to_jsonb(next.roles)
                              ELSE target_role END
      FROM done, next
     WHERE envelope.id = %(envelope)s
    RETURNING step_count - cardinality(next.roles) AS before
), added AS (
    INSERT INTO agents_step (envelope_id, number, batch, role, stage, status, attempt,
                             available_at, rung_at, worker, output, error, created)
    SELECT %(envelope)s, changed.before + place, %(number)s, role,
           coalesce(%(stage)s, done.stage), 'ready', 0, now(), now(), '', '{}', '', now()
      FROM done, changed, next, unnest(next.roles) WITH ORDINALITY AS named(role, place)
    RETURNING number, role
)
SELECT done.seconds::float8,
       (SELECT jsonb_agg(jsonb_build_array(number, role) ORDER BY number) FROM added)
  FROM done
"""
