"""Servers: addresses of other databases on the PostgreSQL and the Redis that the tests run on."""

import os
from urllib.parse import urlsplit

import psycopg
from psycopg import sql


def redis_database(url: str, number: int) -> str:
    """Return the address of another of Redis's numbered databases, over a socket or TCP."""
    address = urlsplit(url)
    if address.scheme == "unix":
        return f"unix://{address.path}?db={number}"
    return address._replace(path=f"/{number}").geturl()


def empty_database(name: str) -> str:
    """Make a database without tables, in place of one of that name; return its address."""
    drop_database(name)
    _do("CREATE DATABASE {}", name)
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


def drop_database(name: str) -> None:
    """Remove a database, whoever uses it."""
    _do("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def _do(statement: str, name: str) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(sql.Identifier(name)))
