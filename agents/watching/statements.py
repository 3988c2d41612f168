"""Statements: what PostgreSQL is asked about the queues.

An ingest is counted as a step of the role `ingest`.
"""

STEPS = """
    SELECT role, status, available_at AS due, started, ended, lease_until, attempt,
           degraded <> '' AS degraded, created
      FROM agents_step"""
INGESTS = """
    SELECT 'ingest' AS role,
           CASE status WHEN 'queued' THEN 'ready' WHEN 'failed' THEN 'quarantined'
                       ELSE status END AS status,
           CASE status WHEN 'queued' THEN updated ELSE created END AS due,
           started, ended, lease_until, attempts AS attempt, false AS degraded, created
      FROM knowledge_ingest"""

# Rows: role, queued, postponed, running, lost, and for how many seconds the oldest is due.
OPEN = f"""
    SELECT role,
           count(*) FILTER (WHERE status = 'ready' AND due <= now()),
           count(*) FILTER (WHERE status = 'ready' AND due > now()),
           count(*) FILTER (WHERE status = 'running' AND lease_until >= now()),
           count(*) FILTER (WHERE status = 'running' AND lease_until < now()),
           extract(epoch FROM now() - min(due) FILTER (WHERE status = 'ready' AND due <= now()))
      FROM ({STEPS} WHERE status IN ('ready', 'running')
            UNION ALL {INGESTS} WHERE status IN ('queued', 'running')) AS work
     GROUP BY role"""  # noqa: S608 constants

# Rows: role, median and 95th percentile of waiting and of running, done, failed attempts,
# degraded, and seconds since the last was taken. The latest rows by id, so that it costs the same
# in a table of millions. What failed and is due again began before it was due: it isn't `taken`.
RECENT = f"""
    SELECT role,
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP
               (ORDER BY extract(epoch FROM started - due)) FILTER (WHERE taken),
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP
               (ORDER BY extract(epoch FROM ended - started)) FILTER (WHERE taken),
           count(*) FILTER (WHERE status = 'done'),
           sum(greatest(attempt - (status IN ('running', 'done', 'cancelled'))::int, 0)),
           count(*) FILTER (WHERE degraded),
           extract(epoch FROM now() - max(started))
      FROM (SELECT *, status IN ('running', 'done', 'quarantined') AS taken
              FROM (({STEPS} ORDER BY id DESC LIMIT %(latest)s)
                    UNION ALL
                    ({INGESTS} ORDER BY knowledge_ingest.created DESC LIMIT %(latest)s)) AS work
             WHERE created >= now() - %(window)s) AS work
     GROUP BY role"""  # noqa: S608 constants
