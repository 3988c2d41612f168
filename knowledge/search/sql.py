"""SQL: how a search asks PostgreSQL, which keeps the plans of what it is asked again.

Planning takes as long as a third of a search. Django's own cursors put the parameters into the
text, so that no statement is ever the same, and Django has connections keep no plans, because
poolers that share them could not; PgBouncer can since 1.21.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Literal

import numpy as np
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from numpy.typing import NDArray
from psycopg import Connection, Cursor

# How far a walk through a vector index looks around. Of the ten nearest of 100,000 chunks 0.99 are
# found, as of the sections and documents; at 60 all are, and the walks take a quarter longer.
AROUND = "40"
# How far it goes on where next to nothing on its way may be found, as after a large deletion that
# no vacuum followed: at pgvector's 20,000 a search among 24,990 deleted vectors found none of the
# ten that were left. Takes a quarter of a second at 58,000, and the memory it takes for them is 16
# times `work_mem` at most; where there is enough to be found, it ends as soon as before.
FARTHEST, MEMORY = "200000", "16"
# Local to the transaction, which a pipeline is by itself. Without iterative scans a filter would be
# applied to the first few hits only, and a small collection beside a large one would find nothing;
# pgvector has them since 0.8, and an unknown setting is an error, so older versions are left alone.
# Compiling takes longer than any of these statements. A plan is good for all parameters: what it
# depends on is in the text.
SETTINGS = """
SELECT set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('hnsw.ef_search', %(around)s, true), (
        SELECT set_config('hnsw.iterative_scan', 'strict_order', true)
            || set_config('hnsw.max_scan_tuples', %(farthest)s, true)
            || set_config('hnsw.scan_mem_multiplier', %(memory)s, true)
        FROM pg_extension
        WHERE extname = 'vector' AND string_to_array(extversion, '.')::int[] >= '{0,8}'
    )
"""

Row = tuple[Any, ...]


class Query:
    """A statement that was sent, in binary; JSON comes as what it says."""

    def __init__(self, statement: str, values: Mapping[str, Any] | None = None) -> None:
        database = connections[DEFAULT_DB_ALIAS]
        self.errors = database.wrap_database_errors
        with self.errors:
            self.cursor = Cursor(connection_with_plans(database))
            self.cursor.execute(statement, values, prepare=True, binary=True)

    def rows(self) -> list[Row]:
        """Return what it found."""
        with self.errors:
            return self.cursor.fetchall()


def rows(statement: str, values: Mapping[str, Any] | None = None) -> list[Row]:
    """Return the rows of one statement."""
    return Query(statement, values).rows()


@contextmanager
def one_transaction() -> Iterator[None]:
    """Run what is asked in the block as one transaction, with the settings of a search.

    Nothing waits for an answer until its rows are wanted: there is time to do something else. In
    a transaction that is open already the settings stay; a block inside another is part of that.
    """
    database = connections[DEFAULT_DB_ALIAS]
    connection = connection_with_plans(database)
    if connection.pgconn.pipeline_status:
        yield
        return
    with database.wrap_database_errors, connection.pipeline():
        Query(SETTINGS, {"around": AROUND, "farthest": FARTHEST, "memory": MEMORY})
        yield


def connection_with_plans(database: BaseDatabaseWrapper) -> Connection[Row]:
    """Return the connection to the database, which keeps plans from now on."""
    database.ensure_connection()
    connection: Connection[Row] = database.connection
    connection.prepare_threshold = 0
    return connection


def text_literal(text: str) -> str:
    """Return the text as SQL: statements that define something take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def array_literal(values: Iterable[int]) -> str:
    """Return the numbers as PostgreSQL reads an array: ten times faster than as a list."""
    return "{" + ",".join(map(str, values)) + "}"


# Of a vector: how many numbers there are, and a zero, then half-precision floats.
HALF, VECTOR_HEADER = np.dtype(">f2"), 2
# Of an array with one dimension: five integers about it, then each value with its length before.
ARRAY_HEADER = 20
Kind = Literal["integer", "bigint", "real"]
VALUES = {
    kind: np.dtype([("length", ">i4"), ("value", value)])
    for kind, value in {"integer": ">i4", "bigint": ">i8", "real": ">f4"}.items()
}


def vectors(sent: Sequence[bytes]) -> NDArray[np.float32]:
    """Return one vector or more, by `halfvec_send`, as rows."""
    numbers = np.frombuffer(b"".join(sent), HALF).reshape(len(sent), -1)
    return numbers[:, VECTOR_HEADER:].astype(np.float32)


def array(sent: bytes | None, kind: Kind) -> NDArray[Any]:
    """Return an array of that kind without NULL, by `array_send`; for none an empty one."""
    return np.frombuffer(sent[ARRAY_HEADER:] if sent else b"", VALUES[kind])["value"]


Milliseconds = dict[str, float]


@contextmanager
def timed(milliseconds: Milliseconds, step: str) -> Iterator[None]:
    """Write down what the block takes, also when it fails."""
    begin = perf_counter()
    try:
        yield
    finally:
        milliseconds[step] = round((perf_counter() - begin) * 1000, 2)
