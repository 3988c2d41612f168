"""Servers: other databases on the PostgreSQL and the Redis that the tests run on; one without rows.

All tests of a run that need tables get a copy of one database that was migrated once.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

TEMPLATE = "test_docent_template"
# Locks of the server, any numbers: on making the template, and, shared, on being there.
MAKING, USING = 7291, 7292
Do = Callable[..., psycopg.Cursor[Any]]
# Filled by `migrate` and by no test: django_migrations, django_content_type, auth_permission.
# Vectors are truncated, as an index of neighbours goes on leading through those that were deleted.
DELETE_ALL = """
DO $$
DECLARE
    place regclass;
    filled boolean;
BEGIN
    SET LOCAL session_replication_role = replica;  -- no keys to other tables: any order will do
    FOR place IN SELECT oid FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            AND relname NOT IN ('django_migrations', 'django_content_type', 'auth_permission')
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', place) INTO filled;
        CONTINUE WHEN NOT filled;
        IF place::text LIKE '%vector' THEN
            EXECUTE format('TRUNCATE %s', place);
        ELSE
            EXECUTE format('DELETE FROM %s', place);
        END IF;
    END LOOP;
END $$
"""


def redis_database(url: str, number: int) -> str:
    """Return the address of another of Redis's numbered databases, over a socket or TCP."""
    address = urlsplit(url)
    if address.scheme == "unix":
        return f"unix://{address.path}?db={number}"
    return address._replace(path=f"/{number}").geturl()


def empty_database(name: str) -> str:
    """Make a database without tables, in place of one of that name; return its address."""
    with _server() as do:
        do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        do("CREATE DATABASE {}", name)
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def migrated_database(name: str) -> str:
    """Copy the template, which this process uses, in place of one of that name; return its address.

    The test takes `django_db_setup`.
    """
    with _server() as do:
        do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        do("CREATE DATABASE {} TEMPLATE {}", name, TEMPLATE)
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


@contextmanager
def copied_database(name: str, make: Callable[[str], None]) -> Iterator[None]:
    """Have a copy of the template for the time of the block.

    Who comes first has the template made: `make` is given its name and fills it. Who ends last
    removes it, so that nothing stays on a server that was given.
    """
    with _server() as do:
        do(f"SELECT pg_advisory_lock({MAKING})")
        if _is_alone(do):
            do("DROP DATABASE IF EXISTS {} WITH (FORCE)", TEMPLATE)
            do("CREATE DATABASE {}", TEMPLATE)
            make(TEMPLATE)
        do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)
        do("CREATE DATABASE {} TEMPLATE {}", name, TEMPLATE)
        do(f"SELECT pg_advisory_lock_shared({USING})")
        do(f"SELECT pg_advisory_unlock({MAKING})")
        yield
        do("DROP DATABASE {} WITH (FORCE)", name)
        do(f"SELECT pg_advisory_lock({MAKING})")
        do(f"SELECT pg_advisory_unlock_shared({USING})")
        if _is_alone(do):
            do("DROP DATABASE {}", TEMPLATE)


def _is_alone(do: Do) -> bool:
    """Whether nobody uses the template; whoever asks has the lock for making it."""
    alone = do(f"SELECT pg_try_advisory_lock({USING})").fetchone() == (True,)
    if alone:
        do(f"SELECT pg_advisory_unlock({USING})")
    return alone


def drop_database(name: str) -> None:
    """Remove a database, whoever uses it."""
    with _server() as do:
        do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def may_delete_rows(database: BaseDatabaseWrapper) -> bool:
    """Whether this user may do so: passing over keys takes a superuser."""
    with database.cursor() as cursor:
        cursor.execute("SHOW is_superuser")
        return bool(cursor.fetchone() == ("on",))


def delete_rows(database: BaseDatabaseWrapper) -> None:
    """Delete what was committed, from the tables that hold something; sequences go on.

    Django's flush truncates all tables, most of them empty: it took half of the time of a test.
    """
    with database.cursor() as cursor:
        cursor.execute(DELETE_ALL)


@contextmanager
def _server() -> Iterator[Do]:
    """Execute statements about databases, whose names stand for `{}`."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield lambda statement, *names: connection.execute(
            sql.SQL(statement).format(*map(sql.Identifier, names))
        )
