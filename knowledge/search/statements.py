"""Statements: how a search asks PostgreSQL, which keeps the plans of what it is asked again.

Planning takes as long as a third of a search. Django's own cursors put the parameters into the
text, so that no statement is ever the same; where its option `prepare_threshold` is not set, as
some connection poolers need it, nothing is kept here either.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection
from psycopg import Cursor

# How far a walk through a vector index looks around. At 60 all of the ten nearest of 100,000 chunks
# are found.
AROUND = "80"
# Local to the transaction. Without iterative scans a filter would be applied to the first few hits
# only, and a small collection beside a large one would find nothing; pgvector has them since 0.8,
# and an unknown setting is an error, so older versions are left alone. Compiling takes longer than
# any of these statements. A plan is good for all parameters: what it depends on is in the text.
SETTINGS = """
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('hnsw.ef_search', %(around)s, true), (
        SELECT set_config('hnsw.iterative_scan', 'strict_order', true) FROM pg_extension
        WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}'
    )
"""

Row = tuple[Any, ...]


def rows(statement: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    """Return the rows of one statement, sent in binary; JSON comes as what it says."""
    connection.ensure_connection()
    with connection.wrap_database_errors, Cursor(connection.connection) as cursor:
        cursor.execute(statement, values, prepare=True, binary=True)
        return cursor.fetchall()


def settle() -> None:
    """Prepare the transaction for what a search asks."""
    rows(SETTINGS, {"around": AROUND})


def array(values: Iterable[int]) -> str:
    """Return the numbers as PostgreSQL reads an array: ten times faster than as a list."""
    return "{" + ",".join(map(str, values)) + "}"
