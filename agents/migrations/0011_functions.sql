-- What the database itself does with the steps of turns: claim, finish, end. A turn is about twenty
-- steps and these are most of what durability costs (`bench hops`), so each is one round trip, and
-- planned once per connection.
--
-- This file is what is true today. The database gets it from the newest migrations/*_functions.sql,
-- a copy that never changes again: to change a function, change it here, copy the whole file beside
-- a new migration that loads it, and drop there first what has other parameters or results than
-- before. A test compares the database and the newest copy with this file.


-- Take what is ready for a role, at most `most` steps, each under a lease of its own.
--
-- The lowest place goes first: a user's only turn under way before the second of anybody else.
-- The settings have it follow the index of ready steps (role, place, available_at) however few
-- steps there are when it is planned: once there are many, to sort them all for one of them takes
-- longer than everything else.
CREATE OR REPLACE FUNCTION agents_claim_ready(
    of_role text, most integer, by_worker text, lease interval, attempts integer
) RETURNS TABLE (
    envelope uuid, number integer, token uuid, attempt integer, payload text,
    process_count integer, stream text, deadline timestamptz, conversation uuid
)
LANGUAGE plpgsql SET enable_sort = off SET enable_seqscan = off AS $$
DECLARE
    moment timestamptz;
BEGIN
    -- Losing a claim in a crash of the database is harmless: the step is ready again.
    SET LOCAL synchronous_commit TO OFF;
    -- One claim of a role after another, each with a look of its own: of two that look at the same
    -- time one could take the step that the other's bell rang for, and leave it nothing that it
    -- has seen. The first number only keeps clear of other locks.
    PERFORM pg_advisory_xact_lock(219205160, hashtext(of_role));
    -- What became due while it waited is due: now(), when it began, is too early.
    moment := clock_timestamp();
    RETURN QUERY
    WITH due AS (
        SELECT step.id
          FROM agents_step AS step
          -- OFFSET 0 has it look turns up by their key: the planner takes open steps for fewer
          -- than they are, and would read all turns instead.
          JOIN LATERAL (
              SELECT whole.status, whole.deadline FROM agents_envelope AS whole
               WHERE whole.id = step.envelope_id OFFSET 0
          ) AS turn ON true
         WHERE step.role = of_role AND step.status = 'ready' AND step.available_at <= moment
           AND step.attempt < attempts AND turn.status = 'running' AND turn.deadline > now()
         ORDER BY step.place, step.available_at
         LIMIT most
           FOR UPDATE OF step SKIP LOCKED
    )
    UPDATE agents_step AS step
       SET status = 'running', attempt = step.attempt + 1, lease_token = gen_random_uuid(),
           lease_until = now() + lease, worker = by_worker, started = now(), ended = NULL
      FROM due, agents_envelope AS turn
     WHERE step.id = due.id AND turn.id = step.envelope_id
    RETURNING turn.id, step.number::integer, step.lease_token, step.attempt::integer,
              turn.payload::text, turn.process_count, turn.target_list::text, turn.deadline,
              turn.conversation_id;
END $$;


-- What two values of an attribute come to; agents/reducer.py says the same. `before` is null where
-- nothing was written yet.
CREATE OR REPLACE FUNCTION agents_reduce(reducer text, before jsonb, new jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN reducer = 'unique_list' THEN coalesce((
            SELECT jsonb_agg(item.value ORDER BY item.place) FROM (
                SELECT each.value, min(each.place) AS place
                  FROM jsonb_array_elements(coalesce(before, '[]') || new)
                       WITH ORDINALITY AS each(value, place)
                 GROUP BY each.value
            ) AS item), '[]')
        WHEN before IS NULL THEN new
        WHEN reducer = 'keep_first' THEN
            CASE WHEN before IN ('null', '""', '[]', '{}') THEN new ELSE before END
        WHEN reducer = 'take_max' THEN greatest(before, new)
        WHEN reducer = 'or' THEN to_jsonb(before::boolean OR new::boolean)
        ELSE before || new
    END
$$;


-- Write down what a step came to, and make the steps that follow it.
--
-- Returns the seconds it took and the steps made, [[number, role], ...] or null; no row when the
-- lease was lost or the turn has ended. An agent names no next roles (null), the manager does.
-- `reducers` says of which attributes what siblings wrote is brought together: {name: reducer}.
-- `allowed` are the seconds that the turn may take from its beginning; null: as many as before.
CREATE OR REPLACE FUNCTION agents_finish(
    of_envelope uuid, of_number integer, held_token uuid, by_role text, new_output jsonb,
    kept jsonb, asked jsonb, forgotten text[], next_roles text[], next_stage text,
    by_mode text, why_degraded text, reducers jsonb, allowed float8
) RETURNS TABLE (seconds float8, added jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    done record;
    part record;
    first_number integer;
BEGIN
    -- A crash of the database may take it back: it is done again, from the journal, where every
    -- reply of a model is on disk before it is used.
    SET LOCAL synchronous_commit TO OFF;
    -- The envelope is locked first and looked at afterwards: of siblings that finish at the same
    -- time the second sees the first done, and exactly one of them finds no sibling open.
    PERFORM 1 FROM agents_envelope WHERE id = of_envelope AND status = 'running' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE agents_step AS step
       SET status = 'done', ended = clock_timestamp(), lease_until = NULL, error = '',
           output = new_output, mode = by_mode, degraded = why_degraded
     WHERE step.envelope_id = of_envelope AND step.number = of_number
       AND step.lease_token = held_token AND step.status = 'running'
    RETURNING step.batch, step.stage, step.place,
              extract(epoch FROM step.ended - step.started)::float8 AS took
      INTO done;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    kept := kept - ARRAY(SELECT jsonb_object_keys(reducers));
    -- An agent names nobody: the last of its siblings calls the manager.
    IF next_roles IS NULL THEN
        next_roles := CASE WHEN EXISTS (
            SELECT 1 FROM agents_step AS sibling
             WHERE sibling.envelope_id = of_envelope AND sibling.batch = done.batch
               AND sibling.status IN ('ready', 'running')
        ) THEN '{}' ELSE ARRAY['manager'] END;
        -- Only now, and in the order of the steps, so that it is all one in which order they end.
        FOR part IN
            SELECT shared.key AS name, shared.value AS reducer,
                   sibling.output -> shared.key AS value,
                   (SELECT payload -> shared.key FROM agents_envelope WHERE id = of_envelope)
                       AS before
              FROM agents_step AS sibling
              JOIN jsonb_each_text(reducers) AS shared ON sibling.output ? shared.key
             WHERE sibling.envelope_id = of_envelope AND sibling.batch = done.batch
               AND sibling.status = 'done' AND cardinality(next_roles) > 0
             ORDER BY sibling.number
        LOOP
            kept := kept || jsonb_build_object(part.name, agents_reduce(
                part.reducer, coalesce(kept -> part.name, part.before), part.value));
        END LOOP;
    END IF;
    UPDATE agents_envelope AS envelope
       SET payload = (payload - forgotten) || kept || jsonb_build_object(
               'clarification_requests',
               (coalesce(payload -> 'clarification_requests', '{}') - by_role) || asked),
           version = version + 1, process_count = process_count + 1,
           total_processing_time = total_processing_time + done.took,
           sender_role = by_role, update_ts = now(),
           deadline = coalesce(create_ts + allowed * interval '1 second', deadline),
           step_count = step_count + cardinality(next_roles),
           target_role = CASE WHEN cardinality(next_roles) > 0 THEN to_jsonb(next_roles)
                              ELSE target_role END
     WHERE envelope.id = of_envelope
    RETURNING step_count - cardinality(next_roles) INTO first_number;
    INSERT INTO agents_step (envelope_id, number, batch, role, stage, status, attempt,
                             available_at, rung_at, worker, output, error, created, place)
    SELECT of_envelope, first_number + ordinal, of_number, named.role,
           coalesce(next_stage, done.stage), 'ready', 0,
           now(), now(), '', '{}', '', now(), done.place
      FROM unnest(next_roles) WITH ORDINALITY AS named(role, ordinal);
    RETURN QUERY
    SELECT done.took,
           (SELECT jsonb_agg(jsonb_build_array(first_number + ordinal, named.role)
                             ORDER BY ordinal)
              FROM unnest(next_roles) WITH ORDINALITY AS named(role, ordinal));
END $$;


-- End a turn, whose envelope the caller has locked: nothing of it stays open.
--
-- Returns the mode its work was done in, which is also put into the payload.
CREATE OR REPLACE FUNCTION agents_end(
    of_envelope uuid, with_status text, with_error text, last_payload jsonb
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    worked text;
BEGIN
    -- Only a turn's end waits for the disk: what a user was told must not be taken back, whatever
    -- this transaction did before.
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
