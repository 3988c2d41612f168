"""The database backend: connections that ended while nobody used them are passed over."""

from datetime import timedelta

import psycopg
import pytest
from django.db import connection

from agents.models import Step
from assistant.postgres.base import ended


def backend() -> int:
    """Return the number of the server process behind this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_ended_is_not_taken_from_the_pool() -> None:
    before = backend()
    connection.close()
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [before])
    assert backend() != before


def backends() -> set[int]:
    """Return the numbers of all server processes: the pool may hold more than one connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return {pid for (pid,) in cursor}


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_open_is_used_again() -> None:
    before = backends()
    assert not ended(connection.connection)
    connection.close()
    assert backend() in before


@pytest.mark.django_db(transaction=True)
def test_who_stops_in_the_midst_of_a_transaction_keeps_its_locks_for_less_than_a_lease() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('idle_in_transaction_session_timeout')::interval")
        (longest,) = cursor.fetchone()
    assert timedelta(0) < longest < Step.LEASE
